// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/locality/text.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/locality/heat_map.hpp"
#include "affinityctl/views/locality/labels.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityctl {

namespace locality = affinityd::locality;

namespace {

constexpr std::size_t most_workers = 10, most_arrivals = 12, most_sources_told = 2;

std::vector<std::string> row_of(const locality::WorkerFigures& worker, const std::string& name) {
    const bool is_any = worker.reads > worker.unknown;
    return {
        name,
        worker.pid == 0 ? "" : std::to_string(worker.pid),
        grouped(worker.reads),
        percent_of(worker.same.cpu, is_any),
        percent_of(worker.same.core, is_any),
        percent_of(worker.same.llc, is_any),
        percent_of(worker.same.node, is_any),
        fmt::format("{}/{}", percent_of(worker.chance.cpu, is_any), percent_of(worker.chance.core, is_any))};
}

std::string workers_text(const LocalityReport& report, const Page& page) {
    const auto& workers = report.figures.workers;
    Table table({"PROCESS", "PID", "READS", "CPU", "CORE", "LLC", "NODE", "CHANCE"});
    for (std::size_t i = 0; i < std::min(workers.size(), most_workers); ++i)
        table.add(row_of(workers[i], workers[i].name.empty() ? "-" : workers[i].name));
    if (workers.size() > most_workers) {
        std::uint64_t rest = 0;
        for (std::size_t i = most_workers; i < workers.size(); ++i)
            rest += workers[i].reads;
        table.add({fmt::format("{} more", workers.size() - most_workers), "", grouped(rest)});
    }
    table.add(row_of(report.figures.total, "all"));
    return table.to_string(page);
}

std::string arrivals_text(const LocalityReport& report, const Page& page) {
    if (report.arrivals.empty()) return {};
    std::uint64_t all = 0;
    for (const auto& place : report.arrivals)
        all += place.reads;
    Table table({"ARRIVES", "PART", "BROUGHT THERE BY"});
    const auto shown = std::min(report.arrivals.size(), most_arrivals);
    for (std::size_t i = 0; i < shown; ++i) {
        const auto& place = report.arrivals[i];
        std::string sources;
        for (std::size_t at = 0; at < std::min(place.sources.size(), most_sources_told); ++at)
            sources += (at > 0 ? "; " : "") + place.sources[at];
        if (place.sources.size() > most_sources_told)
            sources += fmt::format("; {} more", place.sources.size() - most_sources_told);
        table.add({fmt::format("CPU {}", place.cpu),
                   percent_of(static_cast<double>(place.reads) /
                                  static_cast<double>(std::max<std::uint64_t>(all, 1)),
                              all > 0),
                   sources});
    }
    auto text = "\n" + table.to_string(page);
    if (report.arrivals.size() > shown)
        text += fmt::format("and {} more CPUs\n", report.arrivals.size() - shown);
    return text;
}

} // namespace

std::string locality_text(const LocalityReport& report, const locality::Nearness& near, const Page& page) {
    std::string text = wrapped(printable(headline_of(report)), "", page);
    if (!report.figures.workers.empty())
        text += "\n" + workers_text(report, page) +
                wrapped("CPU, CORE, LLC, NODE: read on the one where the packet arrived; CHANCE: CPU and "
                        "core, if packets "
                        "came to a process wherever they arrive.",
                        "", page);
    if (!report.figures.matrix.empty())
        text += "\n" + heat_text(report.figures.matrix, near, page) + arrivals_text(report, page);
    text += "\n";
    for (const auto& remark : remarks_of(report))
        text += wrapped(printable(remark), "", page);
    return text + wrapped(printable(closing_of(report)), "", page);
}

} // namespace affinityctl

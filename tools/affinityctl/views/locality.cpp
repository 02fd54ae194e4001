// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/locality.hpp"

#include "affinityctl/present/svg.hpp"
#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/heat_shades.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>
#include <map>

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

namespace locality = affinityd::locality;

namespace {

constexpr std::size_t usual_width = 80;

using Weights = std::map<unsigned, std::uint64_t>; ///< group -> reads in its row and its column

Weights weights_of(const locality::ReadMatrix& matrix, const locality::Nearness& near,
                   locality::NearLevel level) {
    Weights weights;
    for (const auto& [pair, reads] : matrix) {
        weights[near.group(level, pair.first)] += reads;
        weights[near.group(level, pair.second)] += reads;
    }
    return weights;
}

std::string cell_of(double share, std::size_t width, const Page& page) {
    if (width == heat_narrow) return shade_cell(share, page);
    const auto text = share <= 0 ? "." : share < 0.005 ? "<1" : fmt::format("{:.0f}", share * 100);
    return shaded(fmt::format("{:>{}}", text, heat_wide), share, page);
}

} // namespace

HeatMap fold(const locality::ReadMatrix& matrix, const locality::Nearness& near, std::size_t most) {
    HeatMap map;
    Weights weights;
    for (const auto level : locality::near_levels) {
        map.level = level;
        weights = weights_of(matrix, near, level);
        if (weights.size() <= most) break;
    }
    std::vector<std::pair<std::uint64_t, unsigned>> busiest;
    for (const auto& [group, reads] : weights)
        busiest.emplace_back(reads, group);
    std::ranges::sort(busiest, std::greater{});
    map.left_out = busiest.size() - std::min(busiest.size(), most);
    busiest.resize(std::min(busiest.size(), most));
    std::map<unsigned, std::size_t> place;
    for (const auto& [reads, group] : busiest)
        place[group] = 0;
    for (auto& [group, at] : place) {
        at = map.groups.size();
        map.groups.push_back(group);
    }
    map.cells.assign(map.groups.size(), std::vector<double>(map.groups.size(), 0));
    map.arrivals.assign(map.groups.size(), 0);
    double all = 0;
    for (const auto& [pair, reads] : matrix) {
        all += static_cast<double>(reads);
        const auto row = place.find(near.group(map.level, pair.first));
        const auto column = place.find(near.group(map.level, pair.second));
        if (row == place.end()) continue;
        map.arrivals[row->second] += static_cast<double>(reads);
        if (column != place.end()) map.cells[row->second][column->second] += static_cast<double>(reads);
    }
    for (std::size_t row = 0; row < map.groups.size(); ++row) {
        for (auto& cell : map.cells[row])
            cell /= std::max(map.arrivals[row], 1.0);
        map.arrivals[row] /= std::max(all, 1.0);
    }
    return map;
}

std::string scale_of(const HeatMap& map) {
    auto text = fmt::format("by {}", name_of(map.level));
    if (map.level != locality::NearLevel::cpu) text += ", each named by its lowest CPU";
    if (map.left_out > 0) text += fmt::format("; {} with fewer reads left out", map.left_out);
    return text;
}

std::string heat_text(const locality::ReadMatrix& matrix, const locality::Nearness& near, const Page& page) {
    if (matrix.empty()) return {};
    const auto width = page.width == 0 ? usual_width : page.width;
    const auto room = width > heat_label + 6 ? width - heat_label - 5 : 1;
    const auto map = fold(matrix, near, std::max<std::size_t>(room / heat_narrow, 1));
    const auto cell = map.groups.size() * heat_wide <= room ? heat_wide : heat_narrow;
    Page whole = page;
    whole.width = width;
    std::string text = bold("Arrives (down), read (across)", page.color) + "\n" +
                       wrapped("in % of the row, " + scale_of(map), "  ", whole);
    text += column_heads(map.groups, cell, "read on");
    for (std::size_t row = 0; row < map.groups.size(); ++row) {
        text += row_head(map.groups[row], cell);
        for (const double share : map.cells[row])
            text += cell_of(map.arrivals[row] > 0 ? share : 0, cell, page);
        text += "\n";
    }
    return text;
}

std::string percent_of(double share, bool is_any) {
    return is_any ? fmt::format("{:.0f}%", share * 100) : "-";
}

std::string headline_of(const LocalityReport& report) {
    const auto& total = report.figures.total;
    const auto what = total.reads == 1 ? "read" : "reads";
    return fmt::format("{:.1f} s: {} {}{} by {} ({})", report.seen.seconds, grouped(total.reads),
                       report.seen.has_other_protocols ? "" : "TCP ", what,
                       counted(report.figures.workers.size(), "process", "processes"), report.subject);
}

std::string closing_of(const LocalityReport& report) {
    const auto sentence = sentence_of(advice_for(report.facts), report.facts);
    return report.busiest.empty() ? sentence : report.busiest + ", the busiest: " + sentence;
}

std::vector<std::string> remarks_of(const LocalityReport& report) {
    std::vector<std::string> remarks;
    const auto& seen = report.seen;
    remarks.insert(remarks.end(), seen.notes.begin(), seen.notes.end());
    if (report.figures.total.unknown > 0)
        remarks.push_back(
            fmt::format("Of {} the kernel does not say where the packet arrived; they are in no percentage.",
                        counted(report.figures.total.unknown, "read")));
    if (seen.lost > 0)
        remarks.push_back(counted(seen.lost, "read") + " found no room in the table and are left out.");
    if (seen.of_unknown > 0)
        remarks.push_back(counted(seen.of_unknown, "read") +
                          " by processes that ended at once are left out: whose they were is not known.");
    if (seen.in_softirq > 0)
        remarks.push_back(
            fmt::format("{} times the kernel itself took data off a connection, where no process reads "
                        "(TLS in the kernel and the like); these are left out.",
                        seen.in_softirq));
    return remarks;
}

namespace locality = affinityd::locality;

using nlohmann::json;

namespace {

json shares_json(const locality::NearShares& shares) {
    return {{"cpu", shares.cpu}, {"core", shares.core}, {"llc", shares.llc}, {"node", shares.node}};
}

json worker_json(const locality::WorkerFigures& worker) {
    json value{{"reads", worker.reads}, {"unknown", worker.unknown}};
    const bool is_any = worker.reads > worker.unknown;
    value["same"] = is_any ? shares_json(worker.same) : json();
    value["chance"] = is_any ? shares_json(worker.chance) : json();
    return value;
}

json count_json(const locality::ReadCount& count) {
    return {{"pid", count.pid},
            {"network_namespace", count.network_space},
            {"ifindex", count.device},
            {"napi_id", count.napi},
            {"arrival", or_null(count.arrival)},
            {"cpu", count.reader},
            {"protocol", count.protocol},
            {"reads", count.reads}};
}

} // namespace

json locality_json(const LocalityReport& report) {
    auto processes = json::array();
    for (const auto& worker : report.figures.workers) {
        auto value = worker_json(worker);
        value["pid"] = worker.pid;
        value["name"] = worker.name;
        processes.push_back(std::move(value));
    }
    auto arrivals = json::array();
    for (const auto& place : report.arrivals)
        arrivals.push_back({{"cpu", place.cpu},
                            {"reads", place.reads},
                            {"sources", place.sources},
                            {"interrupt", place.is_interrupt}});
    auto counts = json::array();
    for (const auto& count : report.seen.counts)
        counts.push_back(count_json(count));
    const auto advice = advice_for(report.facts);
    return {{"subject", report.subject},
            {"seconds", report.seen.seconds},
            {"all_protocols", report.seen.has_other_protocols},
            {"lost", report.seen.lost},
            {"of_unknown", report.seen.of_unknown},
            {"in_softirq", report.seen.in_softirq},
            {"all", worker_json(report.figures.total)},
            {"processes", std::move(processes)},
            {"arrivals", std::move(arrivals)},
            {"listeners", report.facts.listeners},
            {"advice", word_of(advice)},
            {"advice_for", or_null(report.busiest)},
            {"text", closing_of(report)},
            {"remarks", remarks_of(report)},
            {"counts", std::move(counts)}};
}

namespace locality = affinityd::locality;

namespace {

constexpr double map_margin = 80, top = 120, side = 640, least_page = 860;
constexpr std::size_t most_groups = 64, most_sources = 48;

std::string shares_text(const locality::WorkerFigures& all) {
    const bool is_any = all.reads > all.unknown;
    return fmt::format(
        "read where they arrived: same CPU {}, core {}, LLC group {}, node {}; by chance: CPU {}, core {}",
        percent_of(all.same.cpu, is_any), percent_of(all.same.core, is_any), percent_of(all.same.llc, is_any),
        percent_of(all.same.node, is_any), percent_of(all.chance.cpu, is_any),
        percent_of(all.chance.core, is_any));
}

void draw_map(Svg& svg, const HeatMap& map, double cell) {
    const auto letters = std::clamp(cell * 0.4, 6.0, 12.0);
    for (std::size_t row = 0; row < map.groups.size(); ++row) {
        const double y = top + cell * static_cast<double>(row);
        const auto name = std::to_string(map.groups[row]);
        svg.text(map_margin - 6, y + cell / 2 + letters / 3, name, letters, Svg::Anchor::end);
        svg.text(map_margin + cell * (static_cast<double>(row) + 0.5), top - 6, name, letters,
                 Svg::Anchor::middle);
        for (std::size_t column = 0; column < map.groups.size(); ++column) {
            const double share = map.cells[row][column];
            const double x = map_margin + cell * static_cast<double>(column);
            svg.rect(x + 0.5, y + 0.5, cell - 1, cell - 1, heat_color(share));
            if (share >= 0.005 && cell >= 24)
                svg.text(x + cell / 2, y + cell / 2 + letters / 3, fmt::format("{:.0f}", share * 100),
                         letters, Svg::Anchor::middle);
        }
    }
}

std::vector<std::string> locality_notes(const LocalityReport& report) {
    std::vector<std::string> sentences;
    std::size_t shown = 0;
    for (const auto& place : report.arrivals)
        if (shown++ < most_sources)
            sentences.push_back(fmt::format("CPU {}: {} reads, brought there by {}", place.cpu, place.reads,
                                            fmt::join(place.sources, "; ")));
    for (const auto& remark : remarks_of(report))
        sentences.push_back(remark);
    sentences.push_back(closing_of(report));
    return sentences;
}

} // namespace

std::string locality_svg(const LocalityReport& report, const locality::Nearness& near) {
    const auto map = fold(report.figures.matrix, near, most_groups);
    const auto count = static_cast<double>(std::max<std::size_t>(map.groups.size(), 1));
    const double cell = std::clamp(side / count, 8.0, 60.0);
    const double bottom = top + cell * static_cast<double>(map.groups.size());
    const auto notes = note_lines(locality_notes(report), least_page - map_margin - 40, 11);
    Svg svg(std::max(least_page, map_margin + cell * count + 40),
            bottom + 40 + note_leading * static_cast<double>(notes.size()),
            "Where packets arrive and where they are read");
    svg.text(map_margin, 28, headline_of(report), 17);
    svg.text(map_margin, 50, shares_text(report.figures.total), 12);
    svg.text(map_margin, 70,
             "Rows: where packets arrive; columns: where they are read; in % of the row, " + scale_of(map),
             12);
    draw_map(svg, map, cell);
    draw_notes(svg, map_margin, bottom + 12, notes, 11);
    return svg.finish();
}

} // namespace affinityctl

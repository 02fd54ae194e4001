// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/models/text.hpp"

#include "affinityctl/present/page.hpp"
#include "affinityctl/views/models/panel.hpp"
#include "affinityctl/views/models/work_view.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

using namespace affinityd::ttcp;
namespace measure = affinityd::measure;

namespace {

using namespace affinityd::ttcp;
using affinityd::CpuSet;

/// A row for the interrupt of each queue, a column for each CPU that took any.
std::string interrupt_table(const ModelSummary& summary, const std::string& label, const Page& page) {
    CpuSet cpus;
    std::map<unsigned, std::map<unsigned, std::uint64_t>> counts;
    std::map<unsigned, std::string> names;
    for (const auto& line : summary.lines) {
        cpus.insert(line.cpu);
        counts[line.irq][line.cpu] += line.count;
        names[line.irq] = line.label;
    }
    if (counts.empty()) return {};
    std::vector<std::string> head{"IRQ", "QUEUE"};
    for (const unsigned cpu : cpus)
        head.push_back(fmt::format("CPU{}", cpu));
    Table table(head);
    for (const auto& [irq, by_cpu] : counts) {
        std::vector<std::string> row{std::to_string(irq), printable(names[irq])};
        for (const unsigned cpu : cpus)
            row.push_back(by_cpu.contains(cpu) ? std::to_string(by_cpu.at(cpu)) : "-");
        table.add(row);
    }
    return fmt::format("\nInterrupts of the NICs, model {}:\n{}", label, table.folded(page, 2));
}

/// Activity of each CPU, per model.
std::string cpu_table(const PointView& point, const std::vector<std::string>& labels, const Page& page) {
    const auto& summaries = point.models;
    Table table({"MODEL", "CPU", "USER S", "SYSTEM S", "IRQ S", "SOFTIRQ S", "INTERRUPTS"});
    for (std::size_t i = 0; i < summaries.size(); ++i)
        for (const auto& cpu : summaries[i].cpus)
            table.add({labels[i], std::to_string(cpu.cpu), fmt::format("{:.2f}", cpu.user_seconds),
                       fmt::format("{:.2f}", cpu.system_seconds), fmt::format("{:.2f}", cpu.irq_seconds),
                       fmt::format("{:.2f}", cpu.softirq_seconds), std::to_string(cpu.interrupts)});
    return table.folded(page, 2);
}

/// For each model, a row for the interrupt of each queue, a column for each CPU that took any; "" where no
/// NIC raised any.
std::string interrupt_tables(const PointView& point, const std::vector<std::string>& labels,
                             const Page& page) {
    std::string text;
    for (std::size_t i = 0; i < point.models.size(); ++i)
        text += interrupt_table(point.models[i], labels[i], page);
    return text;
}

using namespace affinityd::ttcp;
namespace measure = affinityd::measure;

using Row = std::vector<std::string>;

/// `cells` gives the cells of a model; a curve has its size before them, in the first row of each.
template <class Cells>
std::string table_of(const WorkView& view, const std::vector<std::string>& labels, const Page& page,
                     Row heading, Cells cells) {
    heading.insert(heading.begin(), "MODEL");
    if (view.is_curve()) heading.insert(heading.begin(), "SIZE");
    Table table(heading);
    for (const auto& point : view.points)
        for (std::size_t i = 0; i < point.models.size(); ++i) {
            Row row = cells(point.models[i], i == 0);
            row.insert(row.begin(), labels[i]);
            if (view.is_curve()) row.insert(row.begin(), i == 0 ? size_text(point.point) : "");
            table.add(std::move(row));
        }
    return table.folded(page, view.is_curve() ? 2 : 1);
}

std::string change_text(const measure::Comparison& change, bool is_first) {
    return is_first ? "-" : describe(change);
}

std::string rate_cell(const Rate& rate) {
    if (rate.interval) return interval_text(rate.interval, 1, 0);
    return rate.mean ? fmt::format("{:.0f}", *rate.mean) : "-";
}

Row exchange_row(const ModelSummary& model, bool is_first) {
    const auto& exchanges = *model.exchanges;
    return {interval_text(exchanges.per_second, 1, 0), change_text(model.gain, is_first),
            interval_text(exchanges.p50, 1e-6, 1),     change_text(exchanges.p50_change, is_first),
            interval_text(exchanges.p99, 1e-6, 1),     change_text(exchanges.p99_change, is_first)};
}

std::string cost_text(const std::optional<measure::Interval>& cost, bool cycles) {
    return cycles ? interval_text(cost, 1, 2) : interval_text(cost, 1e-3, 1);
}

Row stream_row(const ModelSummary& model, bool is_first, bool cycles) {
    const auto& cost = model.cost;
    return {interval_text(model.bits_per_second, 1e9, 2), change_text(model.gain, is_first),
            cost_text(cycles ? cost.cycles_per_bit.total : cost.cpu_seconds.total, cycles),
            change_text(cost.change, is_first),
            model.busy_cpus ? fmt::format("{:.2f}", *model.busy_cpus) : "-"};
}

bool counts_misses(const WorkView& view) {
    for (const auto& point : view.points)
        for (const auto& model : point.models)
            if (model.per_bit.cache_misses.mean) return true;
    return false;
}

/// A row for each size and model. What was moved, against the first model: throughput and cost, or, with
/// Work::answer, requests and latencies.
std::string gain_table(const WorkView& view, const std::vector<std::string>& labels, const Page& page) {
    const bool cycles = view.has_cycles();
    if (view.work != Work::answer)
        return table_of(
            view, labels, page, {"GBIT/S", "GAIN", cycles ? "GHZ/GBPS" : "CPU MS/GBIT", "COST", "BUSY CPUS"},
            [=](const ModelSummary& model, bool is_first) { return stream_row(model, is_first, cycles); });
    return table_of(view, labels, page, {"REQUESTS/S", "GAIN", "P50 US", "CHANGE", "P99 US", "CHANGE"},
                    [](const ModelSummary& model, bool is_first) {
                        return model.exchanges ? exchange_row(model, is_first) : Row(6, "-");
                    });
}

/// The cost in its parts.
std::string cost_table(const WorkView& view, const std::vector<std::string>& labels, const Page& page) {
    const bool answers = view.work == Work::answer, misses = counts_misses(view);
    const bool cycles = !answers && view.has_cycles();
    Row heading{"PROCESSES", "SOFTIRQ", "INTERRUPTS"};
    if (answers) heading.insert(heading.begin(), {"CPU US/REQUEST", "COST"});
    if (misses) heading.insert(heading.end(), {"MISSES/BIT", "CHANGE"});
    return table_of(view, labels, page, heading, [&](const ModelSummary& model, bool is_first) {
        const auto& cost = cycles ? model.cost.cycles_per_bit : model.cost.cpu_seconds;
        Row row;
        if (answers) row = {interval_text(cost.total, 1e-6, 2), change_text(model.cost.change, is_first)};
        for (const auto* part : {&cost.processes, &cost.softirq, &cost.interrupts})
            row.push_back(answers ? interval_text(*part, 1e-6, 2) : cost_text(*part, cycles));
        if (!misses) return row;
        row.push_back(interval_text(model.per_bit.cache_misses.interval, 1, 5));
        row.push_back(change_text(model.per_bit.misses_change, is_first));
        return row;
    });
}

/// Events of a second.
std::string rate_table(const WorkView& view, const std::vector<std::string>& labels, const Page& page) {
    const Row heading{"SWITCHES/S", "MIGRATIONS/S", "RETRANSMITS/S", "INTERRUPTS/S", "IPIS/S", "NET_RX/S"};
    return table_of(view, labels, page, heading, [](const ModelSummary& model, bool) {
        const auto& rates = model.per_second;
        return Row{rate_cell(rates.switches),   rate_cell(rates.migrations), rate_cell(rates.retransmits),
                   rate_cell(rates.interrupts), rate_cell(rates.ipis),       rate_cell(rates.net_rx)};
    });
}

constexpr std::size_t least_bar = 8, most_bar = 40, beside_bar = 54; // sizes, labels and figures
constexpr std::size_t note_columns = 110;

unsigned bar_columns(const Page& page) {
    if (page.width == 0) return most_bar;
    return static_cast<unsigned>(std::clamp(page.width, beside_bar + least_bar, beside_bar + most_bar) -
                                 beside_bar);
}

std::string work_text(const WorkView& view, const std::vector<std::string>& labels, const Page& page) {
    const bool answers = view.work == Work::answer;
    auto text = fmt::format("{}\n{}", bold(title_of(view), page.color), gain_table(view, labels, page));
    if (const auto drawn = bars(view, labels, bar_columns(page)); !drawn.empty()) text += "\n" + drawn;
    const char* what = answers             ? "CPU time of a request"
                       : view.has_cycles() ? "GHz/Gbps"
                                           : "CPU time of a gigabit";
    text += fmt::format("\n{}{} in its parts:\n{}", what, answers ? "," : "", cost_table(view, labels, page));
    return text + fmt::format("\nMeanwhile:\n{}\n", rate_table(view, labels, page));
}

/// Of the point that stands for the report.
std::string machine_text(const ModelsReport& report, const std::vector<WorkView>& views,
                         const std::vector<std::string>& labels, const Page& page) {
    const auto* main = main_point(report);
    for (const auto& view : views)
        for (const auto& point : view.points) {
            if (main == nullptr || point.point != main->point) continue;
            const auto where = report.points.size() > 1
                                   ? fmt::format(" ({}, {})", to_string(view.work), size_text(point.point))
                                   : std::string();
            return fmt::format("\nAll that ran on each CPU meanwhile, over all rounds{}:\n{}", where,
                               cpu_table(point, labels, page)) +
                   interrupt_tables(point, labels, page);
        }
    return {};
}

} // namespace

std::string models_text(const ModelsReport& report, const std::vector<WorkView>& views, const Page& page) {
    if (!has_rounds(report)) return wrapped(ending_of(report) + ".", "", page);
    const auto labels = labels_of(report);
    auto text =
        wrapped(fmt::format("{}, in {:.0f} s", headline_of(report, views), report.seconds), "", page) +
        wrapped(report.setup, "", page) + "\n";
    for (const auto& view : views)
        text += work_text(view, labels, page);
    const auto columns = page.width == 0 ? note_columns : std::min(page.width, note_columns);
    text += wrapped(notes_of(report, views), "", Page{.width = columns});
    text += machine_text(report, views, labels, page);
    if (report.outcome != measure::Outcome::done) text += "\n" + ending_of(report) + "\n";
    return text;
}

} // namespace affinityctl

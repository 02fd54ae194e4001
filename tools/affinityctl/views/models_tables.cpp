// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/models_tables.hpp"

#include "affinityctl/views/models_chart.hpp"
#include "affinityctl/views/table.hpp"

#include <map>

#include <fmt/format.h>

namespace affinityctl {

using namespace affinityd::ttcp;
using affinityd::CpuSet;
namespace measure = affinityd::measure;

namespace {

constexpr unsigned bar_columns = 40;

std::string interval_text(const std::optional<measure::Interval>& interval, double unit, int digits) {
    if (!interval) return "-";
    return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", interval->estimate / unit, digits,
                       interval->low / unit, digits, interval->high / unit, digits);
}

std::string rate_text(const std::optional<double>& value) {
    return value ? fmt::format("{:.0f}", *value) : "-";
}

/// A row for the interrupt of each queue, a column for each CPU that took any.
std::string interrupt_table(const ModelSummary& summary, const std::string& label, bool color) {
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
    return fmt::format("\nInterrupts of the NICs, model {}:\n{}", label, table.to_string(color));
}

/// What each CPU did, per model.
std::string cpu_table(const std::vector<ModelSummary>& summaries, const std::vector<std::string>& labels,
                      bool color) {
    Table table({"MODEL", "CPU", "USER S", "SYSTEM S", "IRQ S", "SOFTIRQ S", "INTERRUPTS"});
    for (std::size_t i = 0; i < summaries.size(); ++i)
        for (const auto& cpu : summaries[i].cpus)
            table.add({labels[i], std::to_string(cpu.cpu), fmt::format("{:.2f}", cpu.user_seconds),
                       fmt::format("{:.2f}", cpu.system_seconds), fmt::format("{:.2f}", cpu.irq_seconds),
                       fmt::format("{:.2f}", cpu.softirq_seconds), std::to_string(cpu.interrupts)});
    return fmt::format("\nAll that ran on each CPU meanwhile, over all rounds:\n{}", table.to_string(color));
}

std::string comparison_table(const std::vector<ModelSummary>& summaries,
                             const std::vector<std::string>& labels, bool color) {
    Table table({"MODEL", "GBIT/S", "GAIN", "GHZ/GBPS", "COST", "BUSY CPUS", "SWITCHES/S", "MIGRATIONS/S",
                 "RETRANSMITS/S"});
    for (std::size_t i = 0; i < summaries.size(); ++i) {
        const auto& summary = summaries[i];
        table.add({labels[i], interval_text(summary.bits_per_second, 1e9, 2),
                   i == 0 ? "-" : describe(summary.gain), interval_text(summary.cycles_per_bit, 1, 2),
                   i == 0 ? "-" : describe(summary.cost), fmt::format("{:.2f}", summary.busy_cpus),
                   fmt::format("{:.0f}", summary.per_second.switches),
                   rate_text(summary.per_second.migrations), rate_text(summary.per_second.retransmits)});
    }
    return table.to_string(color);
}

} // namespace

std::string models_text(const ModelsReport& report, bool color) {
    const auto summaries = summarize(report.results);
    const auto labels = labels_of(summaries);
    std::string text =
        fmt::format("{} connections, {}, {} rounds of {:g} s for each model on CPUs {}, in {:.0f} s\n{}\n\n",
                    report.connections, report.direction, summaries.front().rounds, report.round_seconds,
                    report.cpus.to_list(), report.seconds, report.setup);
    text += comparison_table(summaries, labels, color) + "\n" + bars(summaries, bar_columns) + "\n";
    text += fmt::format(
        "Harmonic means with 95 % intervals (bootstrap). Gain and cost against {}; their intervals "
        "hold all together. Cost by {}.\n",
        labels.front(), report.cycles_source);
    text += cpu_table(summaries, labels, color);
    for (std::size_t i = 0; i < summaries.size(); ++i)
        text += interrupt_table(summaries[i], labels[i], color);
    if (report.outcome != measure::Outcome::done)
        text += fmt::format("\nnot finished: {}: {}\n", measure::to_string(report.outcome), report.reason);
    return text;
}

} // namespace affinityctl

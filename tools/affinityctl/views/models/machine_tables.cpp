// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/models/machine_tables.hpp"

#include "affinityctl/views/table.hpp"

#include <map>

#include <fmt/format.h>

namespace affinityctl {

using namespace affinityd::ttcp;
using affinityd::CpuSet;

namespace {

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

} // namespace

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

std::string interrupt_tables(const PointView& point, const std::vector<std::string>& labels,
                             const Page& page) {
    std::string text;
    for (std::size_t i = 0; i < point.models.size(); ++i)
        text += interrupt_table(point.models[i], labels[i], page);
    return text;
}

} // namespace affinityctl

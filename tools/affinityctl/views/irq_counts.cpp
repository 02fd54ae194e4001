// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/irq_counts.hpp"

#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::irq::Irq;
using nlohmann::json;

namespace {

constexpr std::size_t most_shown = 3;

json counts_of(const MachineIrqs& machine, const Irq& line) {
    auto by_cpu = json::object();
    for (std::size_t column = 0; column < line.counts.size() && column < machine.table.cpus.size(); ++column)
        if (line.counts[column] > 0) by_cpu[std::to_string(machine.table.cpus[column])] = line.counts[column];
    return by_cpu;
}

json rates_of(const MachineIrqs& machine, const Irq& line) {
    if (!machine.before || machine.seconds <= 0) return nullptr;
    auto by_cpu = json::object();
    const Irq* earlier = machine.before->find(line.number);
    // A CPU that came or went between the readings shifts the columns: nothing can be compared.
    if (earlier == nullptr || machine.before->cpus != machine.table.cpus ||
        earlier->counts.size() != line.counts.size())
        return nullptr;
    for (std::size_t column = 0; column < line.counts.size() && column < machine.table.cpus.size(); ++column)
        if (line.counts[column] > earlier->counts[column])
            by_cpu[std::to_string(machine.table.cpus[column])] =
                static_cast<double>(line.counts[column] - earlier->counts[column]) / machine.seconds;
    return by_cpu;
}

std::string busiest_of(const json& by_cpu, std::string_view unit) {
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [cpu, value] : by_cpu.items())
        order.emplace_back(value.get<double>(), cpu);
    std::ranges::stable_sort(order, std::greater(), &std::pair<double, std::string>::first);
    std::string text;
    for (std::size_t at = 0; at < order.size() && at < most_shown; ++at)
        text += fmt::format("{}cpu{} {:.0f}{}", at == 0 ? "" : ", ", order[at].second, order[at].first, unit);
    if (order.size() > most_shown) text += ", ...";
    return text.empty() ? "-" : text;
}

} // namespace

void add_line(json& into, const MachineIrqs& machine, const Irq& line) {
    into["chip"] = line.chip;
    into["requested"] = or_null(line.requested);
    into["effective"] = or_null(line.effective);
    into["hint"] = or_null(line.hint);
    into["writable"] = line.writable;
    std::uint64_t total = 0;
    for (const auto count : line.counts)
        total += count;
    into["count"] = total;
    into["counts"] = counts_of(machine, line);
    into["rate"] = rates_of(machine, line);
}

std::string busiest(const json& line) {
    return line["rate"].is_object() ? busiest_of(line["rate"], "/s") : busiest_of(line["counts"], "");
}

std::string irq_table(const nlohmann::json& lines, bool color) {
    Table table({"IRQ", "DEVICE", "QUEUE", "KIND", "SOURCE", "REQUESTED", "EFFECTIVE", "LABEL", "COUNT"});
    for (const auto& line : lines) {
        const auto kind = line["kind"].is_null() ? std::string("data?") : line["kind"].get<std::string>();
        table.add({cell(line["irq"]), cell(line["device"]), cell(line["queue"]), kind == "none" ? "-" : kind,
                   cell(line["source"]), cell(line["requested"]), cell(line["effective"]),
                   cell(line["label"]), busiest(line)});
    }
    return table.to_string(color);
}

} // namespace affinityctl

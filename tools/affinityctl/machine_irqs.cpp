// SPDX-License-Identifier: Apache-2.0
#include "machine_irqs.hpp"

#include "host/root.hpp"
#include "irq/reader.hpp"
#include "netdev/reader.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::Result;
using affinityd::irq::Irq;

Result<MachineIrqs> read_machine_irqs(const Globals& globals,
                                      std::optional<std::chrono::milliseconds> interval) {
    const auto root = affinityd::host::Root::open(globals.root);
    if (!root) return std::unexpected(root.error());
    if (interval && !root->is_live()) return affinityd::fail("a recorded machine has no rates", globals.root);
    auto nics = affinityd::netdev::read_nics(*root);
    if (!nics) return std::unexpected(nics.error());
    MachineIrqs machine;
    machine.nics = std::move(*nics);
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    if (interval) {
        auto before = affinityd::irq::read_interrupts(*root);
        if (!before) return std::unexpected(before.error());
        machine.before = std::move(*before);
        std::this_thread::sleep_for(*interval);
    }
    auto table = affinityd::irq::read_interrupts(*root);
    if (!table) return std::unexpected(table.error());
    machine.table = std::move(*table);
    machine.seconds = std::chrono::duration<double>(clock::now() - start).count();
    return machine;
}

nlohmann::json counts_of(const MachineIrqs& machine, const Irq& line) {
    auto by_cpu = nlohmann::json::object();
    for (std::size_t column = 0; column < line.counts.size() && column < machine.table.cpus.size(); ++column)
        if (line.counts[column] > 0) by_cpu[std::to_string(machine.table.cpus[column])] = line.counts[column];
    return by_cpu;
}

nlohmann::json rates_of(const MachineIrqs& machine, const Irq& line) {
    if (!machine.before || machine.seconds <= 0) return nullptr;
    auto by_cpu = nlohmann::json::object();
    const Irq* earlier = machine.before->find(line.number);
    // A CPU that came or went between the readings shifts the columns; then there is nothing to compare.
    if (earlier == nullptr || machine.before->cpus != machine.table.cpus ||
        earlier->counts.size() != line.counts.size())
        return nullptr;
    for (std::size_t column = 0; column < line.counts.size() && column < machine.table.cpus.size(); ++column)
        if (line.counts[column] > earlier->counts[column])
            by_cpu[std::to_string(machine.table.cpus[column])] =
                static_cast<double>(line.counts[column] - earlier->counts[column]) / machine.seconds;
    return by_cpu;
}

double sum_of(const nlohmann::json& by_cpu) {
    double sum = 0;
    for (const auto& value : by_cpu)
        if (value.is_number()) sum += value.get<double>();
    return sum;
}

std::string busiest(const nlohmann::json& by_cpu, std::size_t limit, std::string_view unit) {
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [cpu, value] : by_cpu.items())
        order.emplace_back(value.get<double>(), cpu);
    std::ranges::stable_sort(order, std::greater(), &std::pair<double, std::string>::first);
    std::string text;
    for (std::size_t at = 0; at < order.size() && at < limit; ++at)
        text += fmt::format("{}cpu{} {:.0f}{}", at == 0 ? "" : ", ", order[at].second, order[at].first, unit);
    if (order.size() > limit) text += ", ...";
    return text.empty() ? "-" : text;
}

nlohmann::json list_or_null(const std::optional<affinityd::CpuSet>& cpus) {
    if (!cpus) return nullptr;
    return cpus->to_list();
}

std::string cell(const nlohmann::json& value) {
    if (value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty())) return "-";
    return value.is_string() ? value.get<std::string>() : value.dump();
}

void add_line(nlohmann::json& into, const MachineIrqs& machine, const Irq& line) {
    into["chip"] = line.chip;
    into["requested"] = list_or_null(line.requested);
    into["effective"] = list_or_null(line.effective);
    into["hint"] = list_or_null(line.hint);
    into["writable"] = line.writable;
    std::uint64_t total = 0;
    for (const auto count : line.counts)
        total += count;
    into["count"] = total;
    into["counts"] = counts_of(machine, line);
    into["rate"] = rates_of(machine, line);
}

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.hpp"

#include "netdev/lower.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace affinityd::machine {

const netdev::Nic* Machine::nic(std::string_view name) const {
    const auto found = std::ranges::find_if(nics, [&](const netdev::Nic& nic) {
        return nic.is_called([&](std::string_view own) { return own == name; });
    });
    return found == nics.end() ? nullptr : &*found;
}

std::span<const Vector> Machine::vectors_of(std::string_view nic) const {
    const auto found = vectors.find(nic);
    return found == vectors.end() ? std::span<const Vector>() : found->second;
}

std::map<unsigned, IrqMask> named_irqs(const Machine& machine) {
    std::map<unsigned, IrqMask> found;
    for (const auto& nic : machine.nics)
        for (const auto& vector : machine.vectors_of(nic.name))
            found.try_emplace(vector.irq, irq_subject(nic, vector));
    std::map<unsigned, const irq::Irq*> lines; // ascending
    for (const auto& line : machine.irqs.irqs)
        if (!line.actions.empty()) lines.emplace(line.number, &line);
    std::map<std::string_view, unsigned> before; // lines with this handler
    for (const auto& [number, line] : lines) {
        const auto& label = line->actions.front();
        // A message of one device may have several handlers, too: those of a PCIe port.
        const bool is_line = line->actions.size() > 1 && line->chip.find("MSI") == std::string::npos;
        found.try_emplace(number, IrqMask{line->pci, label, is_line ? 0 : before[label], number, is_line});
        for (const std::string_view action :
             std::set<std::string_view>(line->actions.begin(), line->actions.end()))
            ++before[action];
    }
    return found;
}

void link_vectors(Machine& machine) {
    machine.vectors.clear();
    auto vectors = vectors_of_all(machine.nics, machine.irqs);
    for (std::size_t i = 0; i < vectors.size(); ++i)
        machine.vectors.emplace(machine.nics[i].name, std::move(vectors[i]));
}

KnownLatencies latencies_here(const topology::Latencies& kept, const topology::Topology& topology,
                              std::string_view model) {
    if (kept.measured() == 0) return {};
    if (!kept.is_of(topology, model))
        return {std::nullopt, "the latencies that are kept were measured on another machine", 0};
    return {topology::measured_level(kept, topology), "", 0};
}

void use_latencies(Machine& machine, KnownLatencies latencies) {
    machine.latencies = std::move(latencies);
    auto& topology = machine.topology;
    topology.measured.clear();
    if (!machine.latencies.level) return;
    CpuSet rest = topology.online;
    const auto add = [&](const CpuSet& cpus) {
        const CpuSet group = cpus & rest;
        if (!group.empty()) topology.measured.push_back(group);
        rest -= group;
    };
    std::ranges::for_each(machine.latencies.level->groups, add);
    std::ranges::for_each(topology.llc_groups(), add);
}

CpuSet near_cpus(const Machine& machine, const netdev::Nic& nic) {
    const auto& online = machine.topology.online;
    // The node is asked first: on old firmware local_cpulist is the whole machine although the node is known.
    if (nic.node) {
        if (const auto* node = machine.topology.node(*nic.node);
            node != nullptr && node->cpus.intersects(online))
            return node->cpus & online;
    }
    return nic.local_cpus.intersects(online) ? nic.local_cpus & online : online;
}

std::map<std::string, CpuSet, std::less<>> nic_cpus(const Machine& machine) {
    std::map<std::string, CpuSet, std::less<>> near;
    const netdev::Stacks stacks(machine.nics);
    for (const auto& nic : machine.nics) {
        CpuSet cpus;
        for (const auto* physical : stacks.under(nic))
            cpus |= near_cpus(machine, *physical);
        if (cpus.empty()) cpus = machine.topology.online;
        for (const auto& name : nic.other_names)
            near.emplace(name, cpus);
        near.emplace(nic.name, std::move(cpus));
    }
    return near;
}

std::vector<unsigned> nearest_others(const topology::Topology& topology, unsigned cpu,
                                     const CpuSet& allowed) {
    CpuSet rest = (allowed & topology.online) - CpuSet{cpu};
    std::vector<unsigned> order;
    for (const CpuSet& ring :
         {topology.core_of(cpu), topology.llc_of(cpu), topology.node_cpus_of(cpu), allowed}) {
        const CpuSet here = ring & rest;
        rest -= here;
        for (const unsigned other : here)
            order.push_back(other);
    }
    return order;
}

} // namespace affinityd::machine

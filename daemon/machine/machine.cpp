// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.hpp"

#include "netdev/lower.hpp"

#include <algorithm>

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

IrqMask named_irq(const Machine& machine, const irq::Irq& line) {
    for (const auto& nic : machine.nics)
        for (const auto& vector : machine.vectors_of(nic.name))
            if (vector.irq == line.number) return irq_subject(nic, vector);
    const auto& label = line.actions.front();
    const auto is_before = [&](const irq::Irq& other) {
        return other.number < line.number && std::ranges::find(other.actions, label) != other.actions.end();
    };
    const auto ordinal = static_cast<unsigned>(std::ranges::count_if(machine.irqs.irqs, is_before));
    const bool is_line = line.actions.size() > 1;
    return {line.pci, label, is_line ? 0 : ordinal, line.number, is_line};
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

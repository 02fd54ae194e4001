// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.hpp"

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

} // namespace affinityd::machine

// SPDX-License-Identifier: Apache-2.0
#include "machine/near.hpp"

#include "netdev/lower.hpp"

namespace affinityd::machine {

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

// SPDX-License-Identifier: Apache-2.0
#include "planner/machine.hpp"

#include <algorithm>

namespace affinityd::planner {

const netdev::Nic* Machine::nic(std::string_view name) const {
    const auto found = std::ranges::find(nics, name, &netdev::Nic::name);
    return found == nics.end() ? nullptr : &*found;
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
    for (const auto& nic : machine.nics)
        near.emplace(nic.name, near_cpus(machine, nic));
    return near;
}

} // namespace affinityd::planner

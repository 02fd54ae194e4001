// SPDX-License-Identifier: Apache-2.0
#include "planner/near.hpp"

#include <algorithm>

namespace affinityd::planner {

std::vector<unsigned> nearest_others(const Placements& placements, const topology::Topology& topology,
                                     const Action& action) {
    const auto by = std::ranges::find_if(placements.policies, [&](const Compiled& compiled) {
        return compiled.policy != nullptr && compiled.policy->name == action.policy;
    });
    if (by == placements.policies.end() || action.to.empty()) return {};
    const unsigned wanted = action.to.first();
    CpuSet rest = (by->allowed & placements.online) - action.to;
    std::vector<unsigned> order;
    for (const CpuSet& ring :
         {topology.core_of(wanted), topology.llc_of(wanted), topology.node_cpus_of(wanted), by->allowed}) {
        const CpuSet here = ring & rest;
        rest -= here;
        for (const unsigned cpu : here)
            order.push_back(cpu);
    }
    return order;
}

} // namespace affinityd::planner

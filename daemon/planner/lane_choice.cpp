// SPDX-License-Identifier: Apache-2.0
#include "planner/lane_choice.hpp"

#include "machine/near.hpp"

#include <algorithm>

namespace affinityd::planner {

std::vector<Slot> choose_lanes(const ResolvedPolicy& resolved, const machine::Machine& machine,
                               const netdev::Nic& nic, std::size_t wanted, LaneLoad& load) {
    const CpuSet near = machine::near_cpus(machine, nic);
    const CpuSet usable = resolved.allowed.intersects(near) ? resolved.allowed & near : resolved.allowed;
    policy::Placement placement = resolved.policy->placement;
    placement.spread = policy::Spread::core;
    auto candidates = make_slots(machine.topology, placement, usable, {});
    const auto key = [&](const Slot& slot) { return machine.topology.core_of(slot.cpus.first()).first(); };
    std::vector<Slot> lanes;
    while (lanes.size() < wanted && !candidates.empty()) {
        const auto best = std::ranges::min_element(candidates, {}, [&](const Slot& slot) {
            const auto counted = load.find(key(slot));
            return counted == load.end() ? 0U : counted->second;
        });
        ++load[key(*best)];
        lanes.push_back(std::move(*best));
        candidates.erase(best);
    }
    // Lane order is the machine's, not that of loads: queue 0 next to queue 1.
    std::ranges::sort(lanes, {}, [](const Slot& slot) { return slot.cpus.first(); });
    return lanes;
}

unsigned interrupt_cpu(const ResolvedPolicy& resolved, const machine::Machine& machine,
                       std::span<const Slot> lanes, std::size_t lane) {
    const unsigned own = lanes[lane].cpus.first();
    if (!resolved.policy->separate) return own;
    CpuSet others = (machine.topology.llc_of(own) & resolved.allowed) - machine.topology.core_of(own);
    CpuSet free = others;
    for (const auto& slot : lanes)
        free -= slot.cpus;
    if (!free.empty()) others = free;
    if (others.empty()) return own;
    const auto choice = others.to_vector();
    return choice[lane % choice.size()];
}

} // namespace affinityd::planner

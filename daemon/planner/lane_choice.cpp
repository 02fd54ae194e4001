// SPDX-License-Identifier: Apache-2.0
#include "planner/lane_choice.hpp"

#include "machine/near.hpp"

#include <algorithm>

namespace affinityd::planner {

std::vector<Slot> choose_lanes(const ResolvedPolicy& resolved, const machine::Machine& machine,
                               const netdev::Nic& nic, std::size_t wanted, CpuLoad load) {
    const CpuSet near = machine::near_cpus(machine, nic);
    const CpuSet usable = resolved.allowed.intersects(near) ? resolved.allowed & near : resolved.allowed;
    policy::Placement placement = resolved.policy->placement;
    placement.spread = policy::Spread::core;
    auto candidates = make_slots(machine.topology, placement, usable, {});
    std::vector<Slot> lanes;
    while (lanes.size() < wanted && !candidates.empty()) {
        const auto best = std::ranges::min_element(
            candidates, {}, [&](const Slot& slot) { return load.on_core(slot.cpus.first()); });
        load.add({best->cpus.first()}, one_cpu);
        lanes.push_back(std::move(*best));
        candidates.erase(best);
    }
    // Lane order is the machine's, not that of loads: queue 0 next to queue 1.
    std::ranges::sort(lanes, {}, [](const Slot& slot) { return slot.cpus.first(); });
    return lanes;
}

namespace {

/// Where the interrupts of a lane may go with `separate`: its cache group without its core, best without any
/// lane.
CpuSet separate_cpus(const ResolvedPolicy& resolved, const machine::Machine& machine,
                     std::span<const Slot> lanes, unsigned own) {
    const auto& topology = machine.topology;
    const CpuSet others = (topology.llc_of(own) & resolved.allowed) - topology.core_of(own);
    CpuSet free = others;
    for (const auto& slot : lanes)
        free -= slot.cpus;
    return free.empty() ? others : free;
}

} // namespace

std::vector<unsigned> interrupt_cpus(const ResolvedPolicy& resolved, const machine::Machine& machine,
                                     std::span<const Slot> lanes, LaneLoad& load) {
    std::vector<unsigned> cpus;
    for (const auto& lane : lanes) {
        unsigned cpu = lane.cpus.first();
        if (resolved.policy->separate)
            if (const auto others = separate_cpus(resolved, machine, lanes, cpu); !others.empty())
                cpu = *std::ranges::min_element(others, {},
                                                [&](unsigned other) { return load.expected.of({other}); });
        if (cpu != lane.cpus.first()) load.expected.add({lane.cpus.first()}, one_cpu); // its tasks
        load.add_interrupts(cpu);
        cpus.push_back(cpu);
    }
    return cpus;
}

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#include "planner/lane_choice.hpp"

#include "machine/near.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::planner {

LaneHome lane_home(const ResolvedPolicy& resolved, const Interfaces& interfaces,
                   std::span<const netdev::Nic* const> nics) {
    const auto& machine = interfaces.machine();
    struct Votes {
        CpuSet near;
        std::size_t nics = 0;
    };
    std::vector<Votes> all;
    LaneHome home;
    for (const bool with_spares : {false, true}) {
        for (const auto* nic : nics) {
            CpuSet near = machine::near_cpus(machine, *nic);
            home.near |= near;
            if (!resolved.allowed.intersects(near) || interfaces.is_spare(*nic) != with_spares) continue;
            auto found = std::ranges::find(all, near, &Votes::near);
            if (found == all.end()) found = all.insert(found, Votes{std::move(near)});
            // One that is near all CPUs alike has no say.
            found->nics += found->near == machine.topology.online ? 0 : 1;
        }
        home.is_of_spares = with_spares && !all.empty();
        if (!all.empty()) break;
    }
    home.first = resolved.allowed;
    if (all.empty()) return home;
    const auto most = std::ranges::min_element(all, {}, [](const Votes& votes) {
        return std::pair(-static_cast<std::ptrdiff_t>(votes.nics), votes.near.first());
    });
    home.near = most->near;
    home.first &= home.near;
    for (const auto& votes : all)
        if (votes.nics > 0) home.others |= votes.near - home.near;
    home.then = home.others & resolved.allowed;
    return home;
}

std::vector<Slot> choose_lanes(const ResolvedPolicy& resolved, const machine::Machine& machine,
                               const LaneHome& home, const LaneDemand& demand, const LaneLoad& load) {
    policy::Placement placement = resolved.policy->placement;
    placement.spread = policy::Spread::core;
    const auto place_among_kept = [&](const Slot& slot) {
        return std::ranges::find(demand.kept, slot.cpus, &Slot::cpus) - demand.kept.begin();
    };
    CpuLoad expected = load.expected;
    std::vector<Slot> lanes;
    for (const CpuSet* cpus : {&home.first, &home.then}) {
        if (cpus->empty()) continue;
        auto candidates = make_slots(machine.topology, placement, *cpus, {});
        while (lanes.size() < demand.lanes && !candidates.empty()) {
            const auto best = std::ranges::min_element(candidates, {}, [&](const Slot& slot) {
                return std::pair(place_among_kept(slot), expected.on_core(slot.cpus.first()));
            });
            expected.add({best->cpus.first()}, one_cpu);
            lanes.push_back(std::move(*best));
            candidates.erase(best);
        }
    }
    std::ranges::sort(lanes, {},
                      [&](const Slot& slot) { return std::pair(place_among_kept(slot), slot.cpus.first()); });
    // Who has fewer queues than lanes need not take the first cores, where the interrupts of all others are.
    if (demand.queues >= lanes.size() || !demand.kept.empty()) return lanes;
    std::ranges::stable_sort(lanes, {},
                             [&](const Slot& slot) { return load.queues.on_core(slot.cpus.first()); });
    const auto rest = lanes.begin() + static_cast<std::ptrdiff_t>(demand.queues);
    const auto by_number = [](const Slot& slot) { return slot.cpus.first(); };
    std::ranges::sort(lanes.begin(), rest, {}, by_number);
    std::ranges::sort(rest, lanes.end(), {}, by_number);
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
                                     std::span<const Slot> lanes, std::size_t queues, LaneLoad& load) {
    std::vector<unsigned> cpus;
    for (const auto& lane : lanes) {
        unsigned cpu = lane.cpus.first();
        if (resolved.policy->separate)
            if (const auto others = separate_cpus(resolved, machine, lanes, cpu); !others.empty())
                cpu = *std::ranges::min_element(others, {},
                                                [&](unsigned other) { return load.expected.of({other}); });
        if (cpu != lane.cpus.first()) load.expected.add({lane.cpus.first()}, one_cpu); // its tasks
        const bool has_queue = cpus.size() < queues;
        if (has_queue) load.queues.add({cpu}, one_cpu);
        if (has_queue || !resolved.policy->separate) load.add_interrupts(cpu);
        cpus.push_back(cpu);
    }
    return cpus;
}

} // namespace affinityd::planner

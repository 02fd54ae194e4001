// SPDX-License-Identifier: Apache-2.0
#include "planner/lanes.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace affinityd::planner {

CpuSet cores_of(const topology::Topology& topology, std::span<const Slot> lanes) {
    CpuSet cpus;
    for (const auto& lane : lanes)
        for (const unsigned cpu : lane.cpus)
            cpus |= topology.core_of(cpu);
    return cpus;
}

LaneHome lane_home(const ResolvedPolicy& resolved, const Interfaces& interfaces,
                   std::span<const netdev::Nic* const> nics) {
    const auto& machine = interfaces.machine();
    std::map<CpuSet, std::size_t> votes; // how many of the interfaces are near to these CPUs
    LaneHome home;
    for (const bool with_spares : {false, true}) {
        if (!votes.empty()) break;
        for (const auto* nic : nics) {
            const CpuSet near = machine::near_cpus(machine, *nic);
            home.near |= near;
            if (!resolved.allowed.intersects(near) || interfaces.is_spare(*nic) != with_spares) continue;
            votes[near] += near == machine.topology.online ? 0 : 1; // near all CPUs alike, it has no say
            home.is_of_spares = with_spares;
        }
    }
    home.first = resolved.allowed;
    if (votes.empty()) return home;
    home.near = std::ranges::min_element(votes, {}, [](const auto& vote) {
                    return std::pair(-static_cast<std::ptrdiff_t>(vote.second), vote.first.first());
                })->first;
    home.first &= home.near;
    for (const auto& [near, count] : votes)
        if (count > 0) home.others |= near - home.near;
    home.then = home.others & resolved.allowed;
    home.rest = resolved.allowed - home.first - home.then;
    return home;
}

namespace {

/// Which of the kept lanes a slot is; their number if it is none of them. A core that has lost a sibling, or
/// has it again, is still the same lane.
std::size_t place_among(std::span<const Slot> kept, const Slot& slot) {
    const auto found =
        std::ranges::find_if(kept, [&](const Slot& lane) { return lane.cpus.intersects(slot.cpus); });
    return static_cast<std::size_t>(found - kept.begin());
}

/// With `separate`, how many cores the lanes of a cache group leave for their interrupts.
struct Room {
    std::size_t quiet = 0; ///< cores that no other lanes have, nor their interrupts
    std::size_t lanes = 0, interrupts = 0;
    /// 0: one more lane there leaves a core to the interrupts of each; 1: one to those of all; 2: none.
    [[nodiscard]] int crowding() const {
        if (quiet >= lanes + interrupts + 2) return 0;
        return quiet >= lanes + 2 ? 1 : 2;
    }
};

Room make_room(const CpuSet& cpus, const CpuLoad& lanes) {
    std::set<unsigned> cores;
    for (const unsigned cpu : cpus)
        if (lanes.on_core(cpu) == 0) cores.insert(lanes.core_of(cpu));
    return {cores.size()};
}

/// A core that may become a lane.
struct Candidate {
    Slot slot;
    std::size_t place = 0; ///< among the lanes that are kept
    Room* room = nullptr;  ///< of its cache group; null without `separate`
};

/// Tasks get near ones first, so these have the first queues.
bool is_lower(const Slot& one, const Slot& other) {
    return std::pair(one.distance, one.cpus.first()) < std::pair(other.distance, other.cpus.first());
}

/// In the order of the lanes that are kept: a new one takes the place of one that has gone, or the end.
std::vector<Slot> in_kept_order(std::vector<Slot> lanes, std::span<const Slot> kept) {
    std::vector<std::optional<Slot>> places(lanes.size());
    std::vector<Slot> others;
    std::ranges::sort(lanes, is_lower);
    for (auto& lane : lanes) {
        const auto place = place_among(kept, lane);
        if (place < places.size() && place < kept.size() && !places[place])
            places[place] = std::move(lane);
        else
            others.push_back(std::move(lane));
    }
    std::vector<Slot> ordered;
    auto other = others.begin();
    for (auto& place : places)
        ordered.push_back(place ? std::move(*place) : std::move(*other++));
    return ordered;
}

/// With fewer queues than lanes the first cores, where the interrupts of all others are, need not be
/// interrupted; nor cores far away.
void put_quiet_cores_first(std::vector<Slot>& lanes, std::size_t queues, const LaneLoad& load) {
    std::ranges::stable_sort(lanes, {}, [&](const Slot& slot) {
        return std::pair(slot.distance, load.queues.on_core(slot.cpus.first()));
    });
    const auto rest = lanes.begin() + static_cast<std::ptrdiff_t>(queues);
    std::ranges::sort(lanes.begin(), rest, is_lower);
    std::ranges::sort(rest, lanes.end(), is_lower);
}

/// With `separate`, the CPUs of interrupts that may stay while these lanes are chosen. One on the core of a
/// kept lane is to go.
std::vector<unsigned> staying_interrupts(const ResolvedPolicy& resolved, const LaneDemand& demand,
                                         const topology::Topology& topology) {
    std::vector<unsigned> cpus;
    if (!resolved.policy->separate) return cpus;
    const CpuSet of_lanes = cores_of(topology, demand.kept);
    const auto count = std::min({demand.kept_interrupts.size(), demand.queues, demand.lanes});
    for (const unsigned cpu : demand.kept_interrupts.first(count))
        if (!of_lanes.contains(cpu)) cpus.push_back(cpu);
    return cpus;
}

/// Where the interrupts of a lane may go with `separate`: its cache group without its core, best without any
/// lane.
CpuSet separate_cpus(const ResolvedPolicy& resolved, const machine::Machine& machine, const CpuSet& of_lanes,
                     unsigned own) {
    const auto& topology = machine.topology;
    const CpuSet others = (topology.llc_of(own) & resolved.allowed) - topology.core_of(own);
    CpuSet free = others - of_lanes;
    return free.empty() ? others : free;
}

/// With `separate`, the CPUs of the interrupts of lanes: those that can stay first, so that no other is given
/// the place of one of them. No value for a lane that has no such CPU. Counts the tasks of the lanes, each
/// after its interrupts are placed: where only cores of lanes are left, the interrupts of each go to the next
/// one's, and no core takes those of two.
std::vector<std::optional<unsigned>> separate_interrupts(const ResolvedPolicy& resolved,
                                                         const machine::Machine& machine,
                                                         std::span<const Slot> lanes,
                                                         const LaneDemand& demand, LaneLoad& load) {
    const CpuSet of_lanes = cores_of(machine.topology, lanes);
    std::vector<CpuSet> choices(lanes.size());
    std::vector<std::optional<unsigned>> cpus(lanes.size()), before(lanes.size());
    const auto put = [&](std::size_t lane, unsigned cpu) {
        cpus[lane] = cpu;
        load.expected.add({cpu}, one_cpu);
    };
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        if (i < demand.queues) choices[i] = separate_cpus(resolved, machine, of_lanes, lanes[i].cpus.first());
        if (i < demand.kept_interrupts.size()) before[i] = demand.kept_interrupts[i];
        if (before[i] && choices[i].contains(*before[i])) put(i, *before[i]);
    }
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        if (!choices[i].empty() && (!cpus[i] || demand.may_move)) {
            if (cpus[i]) load.expected.add({*cpus[i]}, -one_cpu);
            put(i, *std::ranges::min_element(choices[i], {}, [&](unsigned cpu) {
                    auto level = load.expected.of({cpu});
                    if (cpu == before[i]) level.core -= much; // unless another one has much less
                    return level;
                }));
        }
        if (cpus[i] || i >= demand.queues) load.add_tasks(lanes[i].cpus.first());
    }
    for (const auto cpu : cpus) // add_interrupts() counts them
        if (cpu) load.expected.add({*cpu}, -one_cpu);
    return cpus;
}

} // namespace

std::vector<Slot> choose_lanes(const ResolvedPolicy& resolved, const machine::Machine& machine,
                               const LaneHome& home, const LaneDemand& demand, const LaneLoad& load) {
    policy::Placement placement = resolved.placement;
    placement.spread = policy::Spread::core;
    CpuLoad expected = load.expected;
    for (const unsigned cpu : staying_interrupts(resolved, demand, machine.topology))
        expected.add({cpu}, one_cpu);
    std::map<unsigned, Room> rooms; // by the first CPU of their cache groups
    const auto room_of = [&](unsigned cpu) -> Room* {
        const CpuSet group = resolved.policy->separate ? machine.topology.llc_of(cpu) : CpuSet();
        if (group.empty()) return nullptr;
        const auto [at, is_new] = rooms.try_emplace(group.first());
        if (is_new) at->second = make_room(group & resolved.allowed, load.lanes);
        return &at->second;
    };
    // One where interrupts would have no core of their own counts as if it had more to do.
    const auto key = [&](const Candidate& one) {
        const auto crowding = one.room == nullptr ? 0 : one.room->crowding();
        const auto there = expected.on_core(one.slot.cpus.first()) + crowding * one_cpu;
        if (!demand.may_move) return std::tuple(Weight{0}, one.place, there);
        return std::tuple(there - (one.place < demand.kept.size() ? much : 0), one.place, Weight{0});
    };
    std::vector<Slot> lanes;
    for (const CpuSet* cpus : {&home.first, &home.then, &home.rest}) {
        if (cpus->empty() || (cpus == &home.rest && !demand.may_be_far)) continue;
        const CpuSet near = cpus == &home.rest ? home.near : CpuSet();
        std::vector<Candidate> candidates;
        for (auto& slot : make_slots(machine.topology, placement, *cpus, near)) {
            auto* room = room_of(slot.cpus.first());
            const auto place = place_among(demand.kept, slot);
            candidates.push_back({std::move(slot), place, room});
        }
        while (lanes.size() < demand.lanes && !candidates.empty()) {
            const auto best = std::ranges::min_element(candidates, {}, key);
            expected.add({best->slot.cpus.first()}, one_cpu);
            if (best->room != nullptr) {
                ++best->room->lanes;
                if (lanes.size() < demand.queues) ++best->room->interrupts;
            }
            lanes.push_back(std::move(best->slot));
            candidates.erase(best);
        }
    }
    lanes = in_kept_order(std::move(lanes), demand.kept);
    if (demand.queues < lanes.size() && demand.kept.empty())
        put_quiet_cores_first(lanes, demand.queues, load);
    return lanes;
}

std::vector<unsigned> interrupt_cpus(const ResolvedPolicy& resolved, const machine::Machine& machine,
                                     std::span<const Slot> lanes, const LaneDemand& demand, LaneLoad& load) {
    const bool is_separate = resolved.policy->separate;
    std::vector<std::optional<unsigned>> apart(lanes.size());
    if (is_separate) apart = separate_interrupts(resolved, machine, lanes, demand, load);
    std::vector<unsigned> cpus;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        cpus.push_back(apart[i].value_or(lanes[i].cpus.first()));
        const bool has_queue = i < demand.queues;
        if (has_queue) load.queues.add({cpus[i]}, one_cpu);
        if (has_queue || !is_separate) load.add_interrupts(cpus[i]);
    }
    return cpus;
}

} // namespace affinityd::planner

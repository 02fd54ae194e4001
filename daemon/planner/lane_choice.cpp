// SPDX-License-Identifier: Apache-2.0
#include "planner/lane_choice.hpp"

#include "machine/near.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
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

namespace {

/// Which of the kept lanes it is; their number if none. A core that has lost a sibling, or has it again, is
/// still the same lane.
std::size_t place_among(std::span<const Slot> kept, const Slot& slot) {
    const auto found =
        std::ranges::find_if(kept, [&](const Slot& other) { return other.cpus.intersects(slot.cpus); });
    return static_cast<std::size_t>(found - kept.begin());
}

bool is_lower(const Slot& one, const Slot& other) { return one.cpus.first() < other.cpus.first(); }

/// In the order of the lanes that are kept: who comes anew takes the place of one that has gone, or the end.
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

/// Who has fewer queues than lanes need not interrupt the first cores, where the interrupts of all others
/// are.
void put_quiet_cores_first(std::vector<Slot>& lanes, std::size_t queues, const LaneLoad& load) {
    std::ranges::stable_sort(lanes, {},
                             [&](const Slot& slot) { return load.queues.on_core(slot.cpus.first()); });
    const auto rest = lanes.begin() + static_cast<std::ptrdiff_t>(queues);
    std::ranges::sort(lanes.begin(), rest, is_lower);
    std::ranges::sort(rest, lanes.end(), is_lower);
}

} // namespace

std::vector<Slot> choose_lanes(const ResolvedPolicy& resolved, const machine::Machine& machine,
                               const LaneHome& home, const LaneDemand& demand, const LaneLoad& load) {
    policy::Placement placement = resolved.placement;
    placement.spread = policy::Spread::core;
    CpuLoad expected = load.expected;
    std::vector<Slot> lanes;
    for (const CpuSet* cpus : {&home.first, &home.then}) {
        if (cpus->empty()) continue;
        auto candidates = make_slots(machine.topology, placement, *cpus, {});
        while (lanes.size() < demand.lanes && !candidates.empty()) {
            const auto best = std::ranges::min_element(candidates, {}, [&](const Slot& slot) {
                const auto place = place_among(demand.kept, slot);
                const auto there = expected.on_core(slot.cpus.first());
                const bool is_kept = place < demand.kept.size();
                return demand.may_move ? std::tuple(there - (is_kept ? much : 0), place, Weight{0})
                                       : std::tuple(Weight{0}, place, there);
            });
            expected.add({best->cpus.first()}, one_cpu);
            lanes.push_back(std::move(*best));
            candidates.erase(best);
        }
    }
    lanes = in_kept_order(std::move(lanes), demand.kept);
    if (demand.queues < lanes.size() && demand.kept.empty())
        put_quiet_cores_first(lanes, demand.queues, load);
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

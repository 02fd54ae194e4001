// SPDX-License-Identifier: Apache-2.0
#include "planner/task_slot.hpp"

#include "planner/place.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace affinityd::planner {

namespace {

using Kind = DistributionId::Kind;

constexpr std::uint64_t enough = 2;       ///< packets
constexpr Weight usual = one_cpu / 4 * 3; ///< a lane may have that much work in any case
constexpr Weight times_its_share = 2;     ///< but of two lanes one has three quarters at most
constexpr Weight hysteresis = 4;          ///< who is there stays until the lane has a fourth more than that

/// The task's slot, on a lane of the policy or where it asked for it, and what slots there are for it.
struct OnLane {
    const Assignments::Seat* seat = nullptr; ///< null: it has none
    std::vector<Slot> slots;
};

/// `table`: the slot in this distribution, whatever it distributes; no value: the one on a lane.
OnLane find_lane(const ResolvedPolicy& resolved, const Placements& placements, const Assignments& assignments,
                 const TaskId& task, std::optional<unsigned> table) {
    const auto [begin, end] = assignments.seats().equal_range(task);
    for (auto at = begin; at != end; ++at) {
        const auto& distribution = assignments.distribution(at->second.table);
        if (distribution.policy != resolved.policy->name) continue;
        const bool is_lane = distribution.kind == Kind::lanes || distribution.kind == Kind::all_lanes;
        if (table ? at->second.table != *table : !is_lane) continue;
        const auto* slots = slots_of(placements, distribution);
        if (slots == nullptr) continue;
        const auto& cpuset = assignments.cpuset_of(at->second);
        return {&at->second, cpuset.empty() ? *slots : cut_slots(*slots, cpuset)};
    }
    return {};
}

/// True if the interrupts of the lane, or what they hand on, are handled on the CPU.
bool is_served_on(const ResolvedPolicy& resolved, const Slot& slot, unsigned cpu) {
    if (slot.cpus.contains(cpu)) return true;
    return std::ranges::any_of(
        resolved.nics, [&](const NicLanes& nic) { return nic.interrupt_cpu(slot.cpus.first()) == cpu; });
}

std::vector<std::uint64_t> count_by_slot(const ResolvedPolicy& resolved, const std::vector<Slot>& slots,
                                         const Arrivals& arrivals) {
    std::vector<std::uint64_t> counts(slots.size());
    for (const auto& [cpu, packets] : arrivals)
        for (std::size_t i = 0; i < slots.size(); ++i) {
            if (!is_served_on(resolved, slots[i], cpu)) continue;
            counts[i] += packets;
            break;
        }
    return counts;
}

bool is_clear(std::uint64_t part, std::uint64_t all) { return all >= enough && 3 * part > 2 * all; }

/// The work that a lane may have.
Weight limit_of(const std::vector<Slot>& slots, const CpuLoad& load) {
    Weight sum = 0;
    for (const auto& slot : slots)
        sum += load.of(slot.cpus).core;
    const auto lanes = static_cast<Weight>(slots.size());
    return std::max(usual, lanes == 2 ? sum / 4 * 3 : times_its_share * sum / lanes);
}

TaskSlot decide(const OnLane& lane, const ResolvedPolicy& resolved, const Assignments& assignments,
                const Arrivals& arrivals) {
    if (lane.seat == nullptr || lane.slots.empty()) return {AtArrivals::no_lane};
    std::uint64_t all = 0;
    for (const auto& [cpu, packets] : arrivals)
        all += packets;
    if (all < enough) return {AtArrivals::unknown};
    const auto counts = count_by_slot(resolved, lane.slots, arrivals);
    const auto best = static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin());
    if (counts[best] == 0) return {AtArrivals::no_lane};
    if (!is_clear(counts[best], all)) return {AtArrivals::mixed};
    const auto& slot = lane.slots[best];
    const auto& load = assignments.load();
    const auto limit = limit_of(lane.slots, load);
    const auto work = load.of(slot.cpus).core;
    if (slot.cpus.first() == lane.seat->now)
        return {work > limit + limit / hysteresis ? AtArrivals::crowded : AtArrivals::here};
    const auto from =
        std::ranges::find(lane.slots, lane.seat->now, [](const Slot& one) { return one.cpus.first(); });
    const auto before = from == lane.slots.end() ? 0 : load.of(from->cpus).core;
    if (work + lane.seat->weight > std::max(limit, before)) return {AtArrivals::crowded};
    return {AtArrivals::moves, TaskSlot::Move{lane.seat->table, lane.seat->now, slot}};
}

} // namespace

std::string_view to_string(AtArrivals state) {
    static constexpr std::array<std::string_view, 6> texts{
        "its packets arrive on its lane",
        "too few of its packets were seen",
        "its packets arrive on several lanes",
        "its packets arrive where the policy has no lane",
        "its packets arrive on a lane that has more than twice its share of the work",
        "it changes over to the lane where its packets arrive"};
    return texts[static_cast<std::size_t>(state)];
}

TaskSlot slot_at_arrivals(const ResolvedPolicy& resolved, const Placements& placements,
                          const Assignments& assignments, const TaskId& task, const Arrivals& arrivals) {
    return decide(find_lane(resolved, placements, assignments, task, std::nullopt), resolved, assignments,
                  arrivals);
}

TaskSlot slot_with_cpu(const ResolvedPolicy& resolved, const Placements& placements,
                       const Assignments& assignments, const TaskId& task, unsigned table, unsigned cpu) {
    const auto lane = find_lane(resolved, placements, assignments, task, table);
    const auto is_there = [&](const Slot& slot) {
        return slot.cpus.first() == lane.seat->now && is_served_on(resolved, slot, cpu);
    };
    if (lane.seat != nullptr && std::ranges::any_of(lane.slots, is_there)) return {AtArrivals::here};
    return decide(lane, resolved, assignments, {{cpu, enough}});
}

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#include "planner/arrivals.hpp"

#include "planner/place.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

namespace affinityd::planner {

std::string_view to_string(NotSteered why) {
    static constexpr std::array<std::string_view, 13> texts{
        "no other one shares the address; SO_REUSEPORT gives each worker its own",
        "tasks of several lanes take connections from the same one",
        "no task has taken a connection or read a datagram yet",
        "the worker has no place yet",
        "the worker has no lane where packets arrive",
        "another policy has placed the queues of the worker's NIC",
        "the worker was released by hand",
        "the server chooses by a BPF program of its own",
        "bound to an interface",
        "UDP is steered only where the policy says steer: accept",
        "UDP, and this kernel does not tell which task reads it (Linux 6.3 does)",
        "there is no room for it, as status says",
        "the kernel does not put it into the map (MPTCP, SMC, or in a map of the server's own)"};
    return texts[static_cast<std::size_t>(why)];
}

namespace {

/// Seats of readers that are counted.
std::size_t counted_seats(const ResolvedPolicy& resolved) {
    std::size_t sum = 0;
    for (const auto& lanes : resolved.nics)
        sum += lanes.seats();
    return sum;
}

} // namespace

bool is_undecided(NotSteered why) { return why == NotSteered::not_seen || why == NotSteered::settling; }

bool is_pinned_only(const ResolvedPolicy& resolved, const ListenerPlan* plan) {
    using policy::Steer;
    const auto& policy = *resolved.policy;
    const auto bind = resolved.placement.bind;
    const bool is_close = bind == policy::Bind::cpu || bind == policy::Bind::core;
    if (policy.model != policy::Model::full || !is_close || counted_seats(resolved) < 2) return false;
    if (policy.steer == Steer::none) return true;
    if (policy.steer == Steer::tasks) return false;
    if (policy.steer == Steer::flows) return !policy.steering; // nothing may be written for them
    // A policy without listeners sends, or takes datagrams.
    return plan != nullptr && plan->steered == 0 &&
           std::ranges::any_of(plan->left, [](const auto& left) { return !is_undecided(left.first); });
}

std::string pinned_note(const ResolvedPolicy& resolved) {
    const auto& bind = resolved.policy->placement.bind;
    return fmt::format("bind: {} and no steering: about one packet in {} is read where it arrives; without "
                       "bind, the scheduler may follow packets inside the cache group",
                       bind == policy::Bind::cpu ? "cpu" : "core", counted_seats(resolved));
}

bool lacks_flow_tables(const ResolvedPolicy& resolved, const Placements& placements) {
    const auto& policy = *resolved.policy;
    if (policy.model != policy::Model::full || policy.steer != policy::Steer::flows || !policy.steering)
        return false;
    const auto is_its = [&](const QueueTarget& target) {
        return target.policy == policy.name && target.off.empty();
    };
    return std::ranges::any_of(placements.queues, is_its) &&
           std::ranges::none_of(placements.queues, [&](const QueueTarget& target) {
               return is_its(target) && std::holds_alternative<FlowTable>(target.subject);
           });
}

namespace {

using Kind = DistributionId::Kind;

bool is_lane(const DistributionId& id) { return id.kind == Kind::lanes || id.kind == Kind::all_lanes; }

using Seats = std::vector<const Assignments::Seat*>;

/// Where a task sits on lanes of the policy.
Seats lane_seats(const ResolvedPolicy& resolved, const Assignments& assignments, const TaskId& task) {
    Seats seats;
    const auto [begin, end] = assignments.seats().equal_range(task);
    for (auto at = begin; at != end; ++at)
        if (const auto& id = assignments.distribution(at->second.table);
            id.policy == resolved.policy->name && is_lane(id))
            seats.push_back(&at->second);
    return seats;
}

/// Where packets for a seat, which is named by its first CPU, are taken in; empty: nowhere that is known.
CpuSet arrivals_of(const SeatRow& row, unsigned seat) {
    for (std::size_t i = 0; i < row.slots.size(); ++i)
        if (row.slots[i].cpus.contains(seat)) return row.arrivals[i];
    return {};
}

CpuSet arrivals_of(const ResolvedPolicy& resolved, const DistributionId& distribution, unsigned seat) {
    if (const auto* row = resolved.row(distribution.among)) return arrivals_of(*row, seat);
    for (const auto& lanes : resolved.nics)
        for (const auto& row : lanes.rows)
            if (const auto cpus = arrivals_of(row, seat); row.rule == distribution.rule && !cpus.empty())
                return cpus;
    return {};
}

} // namespace

std::optional<unsigned> arrival_cpu(const ResolvedPolicy& resolved, const Assignments& assignments,
                                    const TaskId& task) {
    for (const auto* seat : lane_seats(resolved, assignments, task))
        if (const auto cpus = arrivals_of(resolved, assignments.distribution(seat->table), seat->now);
            !cpus.empty())
            return cpus.contains(seat->now) ? seat->now : cpus.first();
    return std::nullopt;
}

NotSteered why_no_arrival(const ResolvedPolicy& resolved) {
    const bool is_of_others =
        !resolved.nics.empty() &&
        std::ranges::all_of(resolved.nics, [](const auto& nic) { return nic.queues.empty(); });
    return is_of_others ? NotSteered::of_others : NotSteered::no_lane;
}

namespace {

/// A lane of one distribution, and its workers, with the slot where each sits.
struct Crowd {
    Slot lane;
    std::vector<std::pair<TaskId, unsigned>> workers{};
};
using Crowds = std::map<unsigned, Crowd>; ///< by the CPU where packets arrive

/// Lanes that share an arrival CPU are one.
Crowds lanes_of(const ResolvedPolicy& resolved, const DistributionId& id, const std::vector<Slot>& slots) {
    Crowds crowds;
    for (const auto& slot : slots)
        if (const auto cpus = arrivals_of(resolved, id, slot.cpus.first()); !cpus.empty())
            crowds.try_emplace(cpus.first(), Crowd{slot});
    return crowds;
}

void spread(unsigned table, Crowds& crowds, std::vector<WorkerMove>& moves) {
    for (auto& [cpu, empty] : crowds) {
        if (!empty.workers.empty()) continue;
        const auto most = std::ranges::max_element(
            crowds, {}, [](const auto& crowd) { return crowd.second.workers.size(); });
        auto& giver = most->second.workers;
        if (giver.size() < 2) return;
        const auto [worker, from] = giver.back();
        giver.pop_back();
        empty.workers.emplace_back(worker, empty.lane.cpus.first());
        moves.push_back({worker, table, from, empty.lane});
    }
}

} // namespace

std::vector<WorkerMove> spread_workers(const ResolvedPolicy& resolved, const Placements& placements,
                                       const Assignments& assignments, std::span<const TaskId> workers) {
    std::map<unsigned, Crowds> tables;
    for (const auto& worker : workers)
        for (const auto* seat : lane_seats(resolved, assignments, worker)) {
            const auto& id = assignments.distribution(seat->table);
            const auto* slots = slots_of(placements, id);
            if (slots == nullptr || !seat->cpuset.empty()) continue;
            auto& crowds = tables.try_emplace(seat->table, lanes_of(resolved, id, *slots)).first->second;
            const auto cpus = arrivals_of(resolved, id, seat->now);
            if (const auto lane = cpus.empty() ? crowds.end() : crowds.find(cpus.first());
                lane != crowds.end())
                lane->second.workers.emplace_back(worker, seat->now);
        }
    std::vector<WorkerMove> moves;
    for (auto& [table, crowds] : tables)
        spread(table, crowds, moves);
    return moves;
}

namespace {

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
    auto seats = table ? Seats{} : lane_seats(resolved, assignments, task);
    const auto [begin, end] = assignments.seats().equal_range(task);
    for (auto at = begin; table && at != end; ++at)
        if (at->second.table == *table && assignments.distribution(*table).policy == resolved.policy->name)
            seats.push_back(&at->second);
    for (const auto* seat : seats)
        if (const auto* slots = slots_of(placements, assignments.distribution(seat->table)))
            return {seat, seat->cpuset.empty() ? *slots : cut_slots(*slots, seat->cpuset)};
    return {};
}

/// True if the interrupts of the lane, or what they hand on, are handled on the CPU.
bool is_served_on(const ResolvedPolicy& resolved, const Slot& slot, unsigned cpu) {
    if (slot.cpus.contains(cpu)) return true;
    for (const auto& lanes : resolved.nics)
        for (const auto& nic : lanes.queues)
            for (const auto& queue : nic)
                if (queue.cpu == cpu && queue.seat.intersects(slot.cpus)) return true;
    return false;
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

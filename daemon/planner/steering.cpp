// SPDX-License-Identifier: Apache-2.0
#include "planner/steering.hpp"

#include "planner/place.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace affinityd::planner {

std::string_view to_string(NotSteered why) {
    static constexpr std::array<std::string_view, 12> texts{
        "the only listener of its address",
        "several tasks take connections from it",
        "no task was seen to take connections from it yet",
        "its worker has no place yet",
        "its worker has no lane where packets arrive",
        "the queues of its worker's NIC are placed by another policy",
        "its worker was released by hand",
        "its program chooses by a BPF program of its own",
        "it is bound to an interface",
        "it is a socket of UDP",
        "the map of listeners is full",
        "the kernel does not take it in"};
    return texts[static_cast<std::size_t>(why)];
}

bool is_undecided(NotSteered why) { return why == NotSteered::not_seen || why == NotSteered::settling; }

bool is_pinned_only(const ResolvedPolicy& resolved, const ListenerPlan* plan) {
    using policy::Steer;
    const auto& policy = *resolved.policy;
    const auto bind = resolved.placement.bind;
    const bool is_close = bind == policy::Bind::cpu || bind == policy::Bind::core;
    if (policy.model != policy::Model::full || !is_close || resolved.all_lanes.size() < 2) return false;
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
                       bind == policy::Bind::cpu ? "cpu" : "core", resolved.all_lanes.size());
}

bool lacks_flow_tables(const ResolvedPolicy& resolved, const Placements& placements) {
    const auto& policy = *resolved.policy;
    if (policy.model != policy::Model::full || policy.steer != policy::Steer::flows || !policy.steering)
        return false;
    const auto is_its = [&](const QueueTarget& target) { return target.policy == policy.name; };
    return std::ranges::any_of(placements.queues, is_its) &&
           std::ranges::none_of(placements.queues, [&](const QueueTarget& target) {
               return is_its(target) && std::holds_alternative<FlowTable>(target.subject);
           });
}

std::optional<unsigned> arrival_cpu(const ResolvedPolicy& resolved, const Assignments& assignments,
                                    const TaskId& task) {
    using Kind = DistributionId::Kind;
    const auto [begin, end] = assignments.seats().equal_range(task);
    for (auto seat = begin; seat != end; ++seat) {
        const auto& distribution = assignments.distribution(seat->second.table);
        if (distribution.policy != resolved.policy->name) continue;
        if (distribution.kind == Kind::lanes) {
            const auto* nic = resolved.lanes(distribution.among);
            if (nic == nullptr) continue;
            if (const auto cpu = nic->arrival_cpu(seat->second.now)) return cpu;
        } else if (distribution.kind == Kind::all_lanes) {
            for (const auto& nic : resolved.nics)
                if (const auto cpu = nic.arrival_cpu(seat->second.now)) return cpu;
        }
    }
    return std::nullopt;
}

NotSteered why_no_arrival(const ResolvedPolicy& resolved) {
    const bool is_of_others =
        !resolved.nics.empty() &&
        std::ranges::all_of(resolved.nics, [](const auto& nic) { return nic.arrivals.empty(); });
    return is_of_others ? NotSteered::of_others : NotSteered::no_lane;
}

namespace {

using Kind = DistributionId::Kind;

/// The workers of each lane, by the CPU where its packets arrive; of one distribution.
struct Crowd {
    std::vector<TaskId> workers;
    Slot lane;
};
using Crowds = std::map<unsigned, Crowd>;

std::optional<unsigned> arrival_of(const ResolvedPolicy& resolved, unsigned lane) {
    for (const auto& nic : resolved.nics)
        if (const auto cpu = nic.arrival_cpu(lane)) return cpu;
    return std::nullopt;
}

/// Lanes that share an arrival CPU are one.
Crowds lanes_of(const ResolvedPolicy& resolved, const std::vector<Slot>& slots) {
    Crowds crowds;
    for (const auto& slot : slots)
        if (const auto cpu = arrival_of(resolved, slot.cpus.first()))
            crowds.try_emplace(*cpu, Crowd{{}, slot});
    return crowds;
}

void spread(const Assignments& assignments, unsigned table, Crowds& crowds, std::vector<WorkerMove>& moves) {
    for (auto& [cpu, empty] : crowds) {
        if (!empty.workers.empty()) continue;
        const auto most = std::ranges::max_element(
            crowds, {}, [](const auto& crowd) { return crowd.second.workers.size(); });
        auto& giver = most->second.workers;
        if (giver.size() < 2) return;
        const auto worker = giver.back();
        giver.pop_back();
        empty.workers.push_back(worker);
        const auto [begin, end] = assignments.seats().equal_range(worker);
        for (auto seat = begin; seat != end; ++seat)
            if (seat->second.table == table) moves.push_back({worker, table, seat->second.now, empty.lane});
    }
}

} // namespace

std::vector<WorkerMove> spread_workers(const ResolvedPolicy& resolved, const Placements& placements,
                                       const Assignments& assignments, std::span<const TaskId> workers) {
    std::map<unsigned, Crowds> tables;
    for (const auto& worker : workers) {
        const auto [begin, end] = assignments.seats().equal_range(worker);
        for (auto seat = begin; seat != end; ++seat) {
            const unsigned table = seat->second.table;
            const auto& distribution = assignments.distribution(table);
            const bool is_lane = distribution.kind == Kind::lanes || distribution.kind == Kind::all_lanes;
            const auto* slots = is_lane && distribution.policy == resolved.policy->name
                                    ? slots_of(placements, distribution)
                                    : nullptr;
            if (slots == nullptr || !assignments.cpuset_of(seat->second).empty()) continue;
            auto& crowds = tables.try_emplace(table, lanes_of(resolved, *slots)).first->second;
            const auto arrival = arrival_of(resolved, seat->second.now);
            if (const auto lane = arrival ? crowds.find(*arrival) : crowds.end(); lane != crowds.end())
                lane->second.workers.push_back(worker);
        }
    }
    std::vector<WorkerMove> moves;
    for (auto& [table, crowds] : tables)
        spread(assignments, table, crowds, moves);
    return moves;
}

} // namespace affinityd::planner

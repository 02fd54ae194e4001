// SPDX-License-Identifier: Apache-2.0
#include "planner/worker_lanes.hpp"

#include "planner/place.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace affinityd::planner {

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

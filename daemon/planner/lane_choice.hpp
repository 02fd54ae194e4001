// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/interfaces.hpp"
#include "planner/lanes.hpp"

#include <span>

namespace affinityd::planner {

/// Where the lanes of interfaces that share them belong.
struct LaneHome {
    CpuSet near;   ///< CPUs of the node of most of them, of those that carry traffic: the lowest of equals
    CpuSet others; ///< CPUs near the others of those: for lanes that have no core of their own there
    CpuSet first;  ///< what the policy may use of `near`; all that it may use if that is none of them
    CpuSet then;   ///< and what it may use of `others`
    CpuSet rest;   ///< and of all others: for tasks that have no core of their own near
    bool is_of_spares = false; ///< the policy has CPUs near interfaces that are spares, and near no others
};
[[nodiscard]] LaneHome lane_home(const ResolvedPolicy& resolved, const Interfaces& interfaces,
                                 std::span<const netdev::Nic* const> nics);

/// All CPUs of the cores of these lanes.
[[nodiscard]] CpuSet cores_of(const topology::Topology& topology, std::span<const Slot> lanes);

/// How many lanes there are to be.
struct LaneDemand {
    std::size_t lanes = 0;
    std::size_t queues = 0;     ///< of the interface that has most: the first so many lanes get interrupts
    std::span<const Slot> kept; ///< lanes that the interfaces have had until now: those come first, in order
    bool may_move = false;      ///< unless another core has much less load
    std::span<const unsigned> kept_interrupts = {}; ///< CPUs that took those of the kept lanes
    bool may_be_far = false;                        ///< a core far away is better than to share one
};

/// Up to as many lanes there, the nearest first: those that are kept, then cores with the least load. First
/// those that get interrupts, on cores with the fewest of others; else in the machine's order.
[[nodiscard]] std::vector<Slot> choose_lanes(const ResolvedPolicy& resolved, const machine::Machine& machine,
                                             const LaneHome& home, const LaneDemand& demand,
                                             const LaneLoad& load);

/// The CPUs that take the interrupts of each lane: the lane's own, or with `separate` others in its cache
/// group: that which took them until now, else those with the least load. They are counted in `load`; with
/// `separate` only those of the lanes where a queue interrupts have such CPUs.
[[nodiscard]] std::vector<unsigned> interrupt_cpus(const ResolvedPolicy& resolved,
                                                   const machine::Machine& machine,
                                                   std::span<const Slot> lanes, const LaneDemand& demand,
                                                   LaneLoad& load);

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/lanes.hpp"

#include <span>

namespace affinityd::planner {

/// Up to `wanted` lanes for an interface, on the cores with the least load; in the machine's order.
[[nodiscard]] std::vector<Slot> choose_lanes(const ResolvedPolicy& resolved, const machine::Machine& machine,
                                             const netdev::Nic& nic, std::size_t wanted, CpuLoad load);

/// The CPUs that take the interrupts of each lane: the lane's own, or with `separate` others in its cache
/// group, those with the least load. They are counted in `load`.
[[nodiscard]] std::vector<unsigned> interrupt_cpus(const ResolvedPolicy& resolved,
                                                   const machine::Machine& machine,
                                                   std::span<const Slot> lanes, LaneLoad& load);

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/lanes.hpp"

#include <span>

namespace affinityd::planner {

/// Up to `wanted` lanes for an interface, in the machine's order; the load of their cores is counted in
/// `load`.
[[nodiscard]] std::vector<Slot> choose_lanes(const ResolvedPolicy& resolved, const machine::Machine& machine,
                                             const netdev::Nic& nic, std::size_t wanted, LaneLoad& load);

/// The CPU that takes the interrupts of lane `lane`: the lane's own, or with `separate` another in its cache
/// group.
[[nodiscard]] unsigned interrupt_cpu(const ResolvedPolicy& resolved, const machine::Machine& machine,
                                     std::span<const Slot> lanes, std::size_t lane);

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "locality/read_counts.hpp"
#include "locality/shares.hpp"
#include "machine/machine.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace affinityd::locality {

/// The CPUs where packets arrive of which processes that `is_meant` read, the busiest first, with what brings
/// them there: the queue by its NAPI instance, where the kernel links the two (6.8); else the interrupts of
/// the flow's interface that go to this CPU now; else RPS, RFS, a NAPI thread; or why there is none. `space`:
/// the network namespace that `machine` was read in. Pure.
[[nodiscard]] std::vector<ArrivalPlace> arrival_places(const std::vector<ReadCount>& counts,
                                                       const machine::Machine& machine, std::uint64_t space,
                                                       const std::function<bool(int pid)>& is_meant);

} // namespace affinityd::locality

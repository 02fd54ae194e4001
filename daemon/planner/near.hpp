// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/action.hpp"
#include "planner/placements.hpp"

#include <vector>

namespace affinityd::planner {

/// CPUs that may stand in for the one an interrupt was meant for: those of its core, then of its cache group,
/// its node, and the rest of what its policy allows; online ones only, none twice, never the wanted one
/// itself.
[[nodiscard]] std::vector<unsigned> nearest_others(const Placements& placements,
                                                   const topology::Topology& topology, const Action& action);

} // namespace affinityd::planner

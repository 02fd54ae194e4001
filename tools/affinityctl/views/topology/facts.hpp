// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/occupancy.hpp"
#include "topology/topology.hpp"

#include <string>

namespace affinityctl {

/// What has no place in a tree: offline and isolated CPUs, kinds of cores, distances between nodes. One line
/// each.
[[nodiscard]] std::string facts_text(const affinityd::topology::Topology& topology);

/// What each policy holds, one line each; "" if there is none.
[[nodiscard]] std::string tenants_text(const Occupancy& occupancy, bool color);

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.hpp"

#include <string>

namespace affinityctl {

/// The document of `topology --json`, on one line; keys in order of the alphabet. Written without a library:
/// this is all that the start-up of the quick way through front.cpp may cost.
[[nodiscard]] std::string topology_json(const affinityd::topology::Topology& topology);

} // namespace affinityctl

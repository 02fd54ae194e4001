// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/occupancy.hpp"
#include "topology/topology.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// Each online CPU with the tasks and interrupts that sit on it. A task that may run on several CPUs counts
/// for a part on each.
[[nodiscard]] std::string seats_text(const Occupancy& occupancy,
                                     const affinityd::topology::Topology& topology, bool color);
/// The same: [{"cpu", "node", "tasks", "interrupts", "holds": [{"policy", "what", "cpus"}]}].
[[nodiscard]] nlohmann::json seats_json(const Occupancy& occupancy,
                                        const affinityd::topology::Topology& topology);

} // namespace affinityctl

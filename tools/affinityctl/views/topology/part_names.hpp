// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/parts.hpp"
#include "topology/topology.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace affinityctl {

/// "31.1 GiB", "1 MiB", "32 KiB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

/// "package 0", "node 1 (31.1 GiB)", "llc 2 (L3 11 MiB)", "core 5", "CPU 17". CPU-set expressions use the
/// same numbers.
[[nodiscard]] std::string part_name(const affinityd::topology::Topology& topology,
                                    const affinityd::topology::Part& part);

/// "32 CPUs, 16 cores, 2 packages, 2 nodes, 62.5 GiB".
[[nodiscard]] std::string machine_summary(const affinityd::topology::Topology& topology);

/// "isolated", "nohz_full", "performance": the special properties of one CPU; most have none.
[[nodiscard]] std::vector<std::string> cpu_marks(const affinityd::topology::Topology& topology, unsigned cpu);

} // namespace affinityctl

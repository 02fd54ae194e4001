// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/latencies.hpp"
#include "topology/topology.hpp"

#include <string>

namespace affinityd::experiments {

/// What the topology calls these CPUs, of those that were measured: "core 3", "llc 0 = node 0 = socket 0",
/// "llc 0-1", "part of llc 2"; "" if it has no words for them. Numbers are those of CPU-set expressions.
[[nodiscard]] std::string name_of_group(const topology::Topology& topology, const CpuSet& group,
                                        const CpuSet& measured);

/// What the groups of a level are to the topology, all of them together: "cores", "LLC groups", "nodes",
/// "sockets"; "" if they are nothing that it knows.
[[nodiscard]] std::string name_of_level(const topology::Topology& topology,
                                        const topology::LatencyLevel& level, const CpuSet& measured);

} // namespace affinityd::experiments

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "topology/topology.hpp"

namespace affinityd::host {
class Dir;
}

namespace affinityd::topology {

/// Adds the online NUMA nodes below `dir` (the folder of nodes) to a topology whose CPUs are read, and tells
/// those CPUs their node. Nodes without memory or without CPUs are nodes; numbers may have holes. An Error:
/// they cannot be listed. Source: Documentation/ABI/stable/sysfs-devices-node.
[[nodiscard]] Result<void> read_nodes(const host::Dir& dir, Topology& topology);

} // namespace affinityd::topology

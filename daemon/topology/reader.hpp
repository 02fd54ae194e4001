// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "topology/topology.hpp"

#include <optional>

namespace affinityd::host {
class Root;
}

namespace affinityd::topology {

enum class Detail {
    shape, ///< all but the sizes of caches, which are a file for each cache
    all,
};

/// Reads /sys/devices/system/{cpu,node} below the root. Missing, unreadable and odd files (ids of -1, offline
/// CPU 0, NUL padding) are values, not faults; an Error only if no CPU can be found at all. Source:
/// Documentation/admin-guide/cputopology.rst, Documentation/ABI/stable/sysfs-devices-{system-cpu,node}.
[[nodiscard]] Result<Topology> read_topology(const host::Root& root, Detail detail = Detail::all);

/// CPUs set apart at boot (isolcpus=domain), and those that cpuset partitions isolate now, which no kernel
/// adds to the first. Source: Documentation/admin-guide/cgroup-v2.rst.
[[nodiscard]] CpuSet read_isolated(const host::Root& root);

/// CPUs that are online now: /sys/devices/system/cpu/online alone. No value: it cannot be read.
[[nodiscard]] std::optional<CpuSet> read_online(const host::Root& root);

} // namespace affinityd::topology

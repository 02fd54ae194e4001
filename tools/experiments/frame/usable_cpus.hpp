// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "topology/topology.hpp"

namespace affinityd::experiments {

/// The online CPUs on which this program may run: its mask and its cpuset allow them, sched_getaffinity(2).
[[nodiscard]] Result<CpuSet> usable_cpus(const topology::Topology& topology);

} // namespace affinityd::experiments

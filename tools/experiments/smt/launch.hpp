// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "topology/topology.hpp"

#include <string>
#include <utility>
#include <vector>

namespace affinityd::experiments {

class Run;

/// The document's first programs: threads that sleep and tell which CPU they are on, first where the
/// scheduler puts them, then each pinned to a CPU of its own. Source: as of Load.
struct LaunchedThread {
    std::vector<unsigned> before, after; ///< the CPU at each look
    unsigned pinned_to = 0;
};

/// Four threads, or one for each CPU where there are fewer, looked at ten times before and ten times after
/// they are pinned: 0.2 s each. An Error: a thread cannot be made or pinned.
[[nodiscard]] Result<std::vector<LaunchedThread>> launch_threads(const CpuSet& cpus, const Run& run);

/// The topology as the document's table (lscpu) has it: name and value. What is not recorded is left out.
[[nodiscard]] std::vector<std::pair<std::string, std::string>>
topology_rows(const topology::Topology& topology);

} // namespace affinityd::experiments

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "topology/latencies.hpp"

#include <optional>
#include <vector>

namespace affinityd::topology {

/// CPUs that are clearly nearer to each other than to all others.
struct LatencyLevel {
    double ns = 0;              ///< for one way within the groups, not within those of a finer level: median
    std::vector<CpuSet> groups; ///< by first CPU, disjoint, every CPU in one; some may stand alone
    friend bool operator==(const LatencyLevel&, const LatencyLevel&) = default;
};

/// The groups that latencies show, fine to coarse, each level's groups being unions of the finer one's. None
/// where the machine is uniform, or what was measured shows no clear groups. Found without any knowledge of
/// the machine: average linkage, cut where the distance leaps, and kept where nearly every CPU is clearly
/// nearer to its mates than to any other group. A CPU that is slow to all others stands in no level.
[[nodiscard]] std::vector<LatencyLevel> latency_levels(const Latencies& latencies);

/// The level that counts as this machine's: the finest one whose groups are more than cores; all CPUs as one
/// group where there is none, with the median of all pairs. No value: nothing was measured.
[[nodiscard]] std::optional<LatencyLevel> measured_level(const Latencies& latencies,
                                                         const Topology& topology);

} // namespace affinityd::topology

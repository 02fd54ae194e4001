// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace affinityd::topology {

class Latencies;

/// Two clusters becoming one, each known by one of its members (a place in Latencies::cpus()).
struct Merge {
    double ns = 0; ///< mean of what was measured between them; infinity: nothing was
    std::size_t a = 0, b = 0;
};

/// Average linkage of all CPUs, the nearest clusters first: one merge less than there are CPUs. Pairs that
/// were not measured count for nothing. By the chain of nearest neighbours, in time and memory of the order
/// of the matrix. Source: Muellner, "Modern hierarchical, agglomerative clustering algorithms", 2011, 3.2.
[[nodiscard]] std::vector<Merge> link_by_average(const Latencies& latencies);

} // namespace affinityd::topology

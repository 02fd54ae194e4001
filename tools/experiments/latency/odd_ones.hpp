// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/frame/nearness.hpp"
#include "experiments/latency/distances.hpp"

#include <vector>

namespace affinityd::experiments {

/// A CPU that is farther from others than they are from each other at the same distance.
struct OddCpu {
    unsigned cpu = 0;
    double ns = 0;    ///< median to those at that distance
    double usual = 0; ///< of all pairs at that distance
    std::string distance;
};

/// A pair that is much slower than all others at the same distance.
struct SlowPair {
    CpuPair pair;
    double ns = 0, usual = 0;
    std::string distance;
};

struct OddOnes {
    std::vector<OddCpu> cpus;    ///< the oddest first
    std::vector<SlowPair> pairs; ///< the slowest first; without pairs of an odd CPU
};

/// What stands out of what was measured. Of CPUs, medians are compared, which a few slow pairs do not move;
/// of pairs, those that are slower by half, and by more than chance would have it.
[[nodiscard]] OddOnes find_odd_ones(const topology::Latencies& latencies, const Distances& distances);

} // namespace affinityd::experiments

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/sharers/wakes.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace affinityctl {

/// Two threads that woke each other.
struct SharerEdge {
    Wakes::Thread one, other;    ///< one < other
    std::uint64_t one_wakes = 0; ///< times that `one` woke `other`
    std::uint64_t other_wakes = 0;
    double rate = 0; ///< both, per second
    double share =
        0; ///< of all wake-ups of the two threads, the part that is theirs: of the one with the greater
    bool is_sharer = false;
    unsigned group = 0; ///< that both are in, counted from 1; 0: none
    [[nodiscard]] std::uint64_t wakes() const { return one_wakes + other_wakes; }
};

/// Fewer are chance, or no reason to put threads together: programs start and end threads, wait for
/// rare locks, and log.
struct SharerLimits {
    std::uint64_t least_wakes = 10;  ///< of a pair, both ways, that were seen for certain
    double least_rate = 1;           ///< of a pair per second, both ways
    double least_share = 0.01;       ///< of all wake-ups of one of the two
    double part_of_strongest = 0.25; ///< of each one's strongest pair: what puts two into one group
};

/// Pairs of threads that share, strongest first; threads that belong together.
struct SharerGraph {
    std::vector<SharerEdge> edges; ///< all pairs, also those that are no sharers
    /// Each of two threads at least, ascending; in the order of their strongest pairs.
    std::vector<std::vector<Wakes::Thread>> groups;
    std::uint64_t wakes = 0;    ///< of all pairs
    std::size_t weak_pairs = 0; ///< pairs that are no sharers
    std::uint64_t weak_wakes = 0;
};

/// Pairs are sharers by the limits. Two sharers are in one group if their pair has a good part of the
/// wake-ups of the strongest pair of each of them, and so are all that hang together by such pairs: a thread
/// that hands work to all now and then does not make one group of all.
[[nodiscard]] SharerGraph graph_of(const Wakes& wakes, const SharerLimits& limits = {});

} // namespace affinityctl

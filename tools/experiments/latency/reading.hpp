// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/latency/distances.hpp"

#include <string>
#include <vector>

namespace affinityd::experiments {

/// What latencies say of a machine, in words for people.
struct LatencyReading {
    std::vector<topology::LatencyLevel> levels; ///< fine to coarse
    std::vector<std::string> level_names;       ///< of each; "" where the topology has no word for it
    std::vector<Distance> distances;            ///< near to far
    bool is_uniform = false;                    ///< no pair is clearly nearer than most, so no groups either
    std::size_t not_measured = 0;               ///< pairs, of which that says nothing
    std::vector<std::string> findings;          ///< what the topology does not tell, a sentence each
    std::string meaning;                        ///< what it means for policies, some sentences
};

/// `topology` may be null: of a foreign table nothing else is known.
[[nodiscard]] LatencyReading read_latencies(const topology::Latencies& latencies,
                                            const topology::Topology* topology);

/// "same LLC 18 ns, across sockets 84 ns; 2 levels of groups": for one line.
[[nodiscard]] std::string summary_of(const LatencyReading& reading);

} // namespace affinityd::experiments

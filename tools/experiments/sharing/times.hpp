// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "experiments/sharing/program.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::experiments {

class Run;

struct SharingHow {
    unsigned rounds = 40; ///< in each, every placing has one run
    unsigned additions = usual_additions;
};

/// What one placing gave.
struct PlacingTimes {
    PlacedThreads placed;
    std::vector<double> seconds;     ///< of each run, by round
    std::optional<CacheReads> reads; ///< of further runs; no value: no counters
};

struct SharingTimes {
    std::vector<PlacingTimes> placings;
    SharingHow how;
    std::string no_counters; ///< why misses are not counted; "" where they are
    bool is_whole = true;    ///< all rounds were made before somebody stopped it
    std::size_t rounds() const { return placings.empty() ? 0 : placings.front().seconds.size(); }
};

/// Runs all placings by turns, each round beginning with another one, so that what disturbs for a while hits
/// all alike. An Error: a thread cannot be made or pinned.
[[nodiscard]] Result<SharingTimes> measure_sharing(const std::vector<PlacedThreads>& placings,
                                                   const SharingHow& how, Run& run);

/// About how long that takes, from experience.
[[nodiscard]] double estimated_seconds(std::size_t placings, const SharingHow& how);

} // namespace affinityd::experiments

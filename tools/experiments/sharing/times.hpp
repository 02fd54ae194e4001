// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "experiments/frame/miss_counter.hpp"
#include "experiments/sharing/placings.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::experiments {

/// How often each thread adds to its variable; the document's number.
inline constexpr unsigned usual_additions = 1U << 18U;

struct SharingRun {
    double seconds = 0; ///< from before the threads are made until all have ended, as in the document
    std::optional<CacheReads> reads; ///< of all four; no value: not counted
};

/// One run of the program: four threads, each of which adds 1.0 to its variable, not as one operation but by
/// a load and a store, as the document's `val = val + 1.0f` of an atomic float does. With `counts` each
/// counts its misses, which takes time of its own. An Error: a thread cannot be made or may not run there.
[[nodiscard]] Result<SharingRun> run_sharing(const PlacedThreads& placed, unsigned additions, bool counts);

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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "experiments/frame/miss_counter.hpp"
#include "experiments/sharing/placings.hpp"

#include <optional>

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

} // namespace affinityd::experiments

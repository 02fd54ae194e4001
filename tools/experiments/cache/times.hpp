// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "experiments/cache/places.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace affinityd::experiments {

class Run;

struct CacheHow {
    std::vector<double> quanta_ms{2, 10, 200}; ///< the document's
    unsigned rounds = 8;                       ///< in each, every place has one quantum
    std::vector<std::uint64_t> footprints;     ///< bytes, ascending
    std::uint64_t polluter_bytes = 0;          ///< what is read to fill the last level, as of Polluter
};

/// One working set, one quantum, one place.
struct CacheCell {
    std::uint64_t footprint = 0; ///< bytes
    double quantum_ms = 0;
    Place place = Place::kept;
    /// CPU time of work that takes about one quantum where the cache is kept, by round: how long it took
    /// after the interruption.
    std::vector<double> seconds;
};

struct CacheTimes {
    std::vector<CacheCell> cells; ///< by footprint, quantum, place
    CacheHow how;
    std::size_t disturbed = 0; ///< quanta that count though another program had the CPU during them
    bool is_whole = true;      ///< all was measured before somebody stopped it
};

/// A thread that is pinned to `home` walks through its working set, is interrupted by one that fills caches
/// or not, and goes on at each place by turns. The CPU that it goes to was filled with other data before. A
/// quantum during which another program had the CPU is taken again, once. An Error: no memory, or it cannot
/// be pinned.
[[nodiscard]] Result<CacheTimes> measure_cache(const CacheSeats& seats, const CacheHow& how, Run& run);

/// About how long that takes.
[[nodiscard]] double estimated_seconds(const CacheSeats& seats, const CacheHow& how);

} // namespace affinityd::experiments

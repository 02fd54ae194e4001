// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/cache/times.hpp"
#include "measure/statistics.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::experiments {

struct CellFigures {
    std::uint64_t footprint = 0; ///< bytes
    double quantum_ms = 0;
    Place place = Place::kept;
    std::optional<measure::Interval> seconds; ///< mean; no value: too few rounds
    measure::Comparison longer;               ///< than where the cache is kept; of `kept` without meaning
    [[nodiscard]] bool is_costly() const;     ///< it is shown to be longer by more than little_loss
};
/// Who loses less does not need a narrower mask.
inline constexpr double little_loss = 0.01;

/// One place at one quantum, over the working sets that fit into the cache that is lost (the core's own for
/// `displaced` and `group`, the last level for others): the document's "11 % on average and 27 % maximum".
struct PlaceLoss {
    Place place = Place::kept;
    double quantum_ms = 0;
    measure::Comparison mean;       ///< how much longer, on average over the working sets
    double most = 0;                ///< relative, of the working set that loses most
    std::uint64_t at = 0;           ///< that one, bytes
    std::size_t costly = 0, of = 0; ///< of those working sets: shown to lose by themselves, and all
    /// Shown on average, or by two working sets: one of many may be chance.
    [[nodiscard]] bool is_shown() const;
};

/// The value of `bind` that this machine rewards.
enum class Width {
    core,      ///< even another core of the same LLC costs
    llc,       ///< another LLC costs
    node,      ///< another node costs
    not_known, ///< no move was shown to cost anything, or there were too few rounds, or the machine was busy
};
[[nodiscard]] std::string_view name_of(Width width); ///< "bind: llc"

struct CacheReading {
    std::vector<CellFigures> cells; ///< as measured
    std::vector<PlaceLoss> losses;  ///< of all places but `kept`, by quantum, then place
    Width width = Width::not_known;
    std::vector<std::string> findings; ///< sentences
    std::string meaning;               ///< one paragraph: what to write into a policy
};

/// Pure. `is_quiet`: the machine was neither busy nor emulated; else there is no verdict. All comparisons, of
/// all cells and all averages, hold together in 95 of 100 experiments.
[[nodiscard]] CacheReading read_cache(const CacheTimes& times, const CacheSeats& seats, bool is_quiet = true);

/// One line for the history.
[[nodiscard]] std::string summary_of(const CacheReading& reading);

} // namespace affinityd::experiments

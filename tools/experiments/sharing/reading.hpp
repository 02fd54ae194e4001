// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/sharing/times.hpp"
#include "measure/statistics.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::experiments {

struct PlacingFigures {
    Placing placing = Placing::scheduler;
    std::optional<measure::Interval> seconds; ///< mean time of a run; no value: too few
    double median = 0;                        ///< seconds
    std::optional<double> miss_rate;          ///< part of the L1d reads
    measure::Comparison longer;               ///< than `scheduler`; of that one without meaning
};

/// What the times say.
struct SharingReading {
    std::vector<PlacingFigures> placings; ///< as measured; the first is `scheduler`
    std::vector<std::string> findings;    ///< sentences
    std::string meaning;                  ///< one paragraph: what to write into a policy
};

/// Pure. All comparisons, those with `scheduler` and that of false sharing with `pairs`, hold together in 95
/// of 100 experiments.
[[nodiscard]] SharingReading read_sharing(const SharingTimes& times);

/// One line for the history.
[[nodiscard]] std::string summary_of(const SharingReading& reading);

} // namespace affinityd::experiments

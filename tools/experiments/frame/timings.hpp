// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/statistics.hpp"

#include <optional>
#include <span>
#include <string>

namespace affinityd::experiments {

/// A time as people say it, when it is an estimate: "under 1 s", "12 s", "3 min", "1 h 20 min".
[[nodiscard]] std::string time_words(double seconds);

/// How long the same work took, time after time, in seconds: all above zero. The functions below say of such
/// times what measure/comparison.hpp says of rates.

/// Their mean and the interval that holds the true one; no value below measure::least_samples.
[[nodiscard]] std::optional<measure::Interval> mean_time(std::span<const double> seconds);

/// How much longer `other` took than `base`, relative: 0.75 is 75 % longer (Verdict::more), below zero is
/// shorter (Verdict::less). `comparisons`: how many such statements are made about one experiment.
[[nodiscard]] measure::Comparison how_much_longer(std::span<const double> base, std::span<const double> other,
                                                  unsigned comparisons = 1);

} // namespace affinityd::experiments

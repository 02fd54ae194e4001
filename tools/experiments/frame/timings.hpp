// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/comparison.hpp"

#include <optional>
#include <span>

namespace affinityd::experiments {

/// How long the same work took, time after time, in seconds: all above zero. The functions below say of such
/// times what measure/comparison.hpp says of rates.

/// Their mean and the interval that holds the true one; no value below measure::least_samples.
[[nodiscard]] std::optional<measure::Interval> mean_time(std::span<const double> seconds);

/// How much longer `other` took than `base`, relative: 0.75 is 75 % longer (Verdict::more), below zero is
/// shorter (Verdict::less). `comparisons`: how many such statements are made about one experiment.
[[nodiscard]] measure::Comparison how_much_longer(std::span<const double> base, std::span<const double> other,
                                                  unsigned comparisons = 1);

} // namespace affinityd::experiments

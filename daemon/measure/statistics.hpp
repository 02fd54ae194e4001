// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

namespace affinityd::measure {

/// Mean of rates over equal amounts of work. No value without samples or with one that is not positive and
/// finite.
[[nodiscard]] std::optional<double> harmonic_mean(std::span<const double> samples);

/// No value without samples.
[[nodiscard]] std::optional<double> median(std::span<const double> samples);

/// All are above zero and finite.
[[nodiscard]] bool all_positive(std::span<const double> samples);

} // namespace affinityd::measure

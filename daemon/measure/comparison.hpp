// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace affinityd::measure {

/// Pure functions over samples.

/// An estimate and the interval that holds the true value in 95 of 100 such experiments.
struct Interval {
    double estimate = 0;
    double low = 0;
    double high = 0;
    [[nodiscard]] bool excludes_zero() const { return low > 0 || high < 0; }
};

enum class Verdict {
    not_enough, ///< too few samples for any statement
    none_shown, ///< the interval holds zero: no difference shown (not: no difference)
    more,       ///< the second is greater
    less,       ///< the second is smaller
};
[[nodiscard]] std::string_view to_string(Verdict verdict);

struct Comparison {
    Verdict verdict = Verdict::not_enough;
    Interval change; ///< of the harmonic mean, relative: 0.29 is 29 % more; zeros with not_enough
};

/// The least number of samples on each side for which an interval is given.
inline constexpr std::size_t least_samples = 4;

/// How much greater the harmonic mean of `changed` is than that of `base`. Samples of equal number are paired
/// by round, so that a drift during the experiment cancels. `comparisons` is the number of such statements
/// made about one experiment: the interval is widened so that all of them together hold in 95 of 100
/// experiments (Bonferroni). Student's t, on the logarithm of the ratio: four samples that happen to lie on
/// one side, as they do in one of eight experiments, are not enough for a verdict, which they would be for an
/// interval that cannot be wider than the samples are apart (a bootstrap). Nor are a few samples that are far
/// off, as other programs and interrupts make them: zero is left out only if Student's t on the differences
/// leaves it out, too.
[[nodiscard]] Comparison compare(std::span<const double> base, std::span<const double> changed,
                                 unsigned comparisons = 1);

/// Interval of the harmonic mean itself, likewise; no value below least_samples.
[[nodiscard]] std::optional<Interval> mean_interval(std::span<const double> samples);

/// Interval of the arithmetic mean, for costs over equal work and for counts, which may be 0 and never are
/// below; no value below least_samples, or if a sample is negative or not finite.
[[nodiscard]] std::optional<Interval> average_interval(std::span<const double> samples);

} // namespace affinityd::measure

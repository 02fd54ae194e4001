// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace affinityd::measure {

/// Pure functions over samples. The same samples give the same answer: the bootstrap's seed is fixed.

/// Mean of rates (throughput over equal amounts of work). Nothing without samples or with one that is not
/// positive.
[[nodiscard]] std::optional<double> harmonic_mean(std::span<const double> samples);
/// Nothing without samples.
[[nodiscard]] std::optional<double> median(std::span<const double> samples);

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

/// The least number of samples a side for which an interval is given.
inline constexpr std::size_t least_samples = 4;

/// How much greater the harmonic mean of `changed` is than that of `base`. Of equal length, the samples are
/// taken as pairs from the same round, so that what drifts during the experiment cancels. `comparisons`: how
/// many such statements are made of one experiment; the interval is widened so that all of them together hold
/// in 95 of 100 experiments (Bonferroni). Percentile bootstrap, widened for few samples by Student's t
/// (Hesterberg 2015, "What teachers should know about the bootstrap", 4.5.3: the plain percentile interval of
/// 6 samples covers some 88 %, not 95 %).
[[nodiscard]] Comparison compare(std::span<const double> base, std::span<const double> changed,
                                 unsigned comparisons = 1);

/// Interval of the harmonic mean itself; nothing below least_samples.
[[nodiscard]] std::optional<Interval> mean_interval(std::span<const double> samples);

/// How the last run stands to those before it.
enum class Trend {
    unknown, ///< fewer than 8 earlier runs
    steady,
    up,   ///< above what the runs before let expect
    down, ///< below it
};
[[nodiscard]] std::string_view to_string(Trend trend);

struct TrendReport {
    Trend trend = Trend::unknown;
    double median = 0; ///< rolling median of the earlier runs; 0 with unknown
    double low = 0;    ///< a next run is expected between these
    double high = 0;
    double change = 0; ///< last run against the median, relative
};

/// `values` oldest first; the last is judged by the median of up to `window` runs before it and by their
/// spread (median absolute deviation as a normal sigma, times Student's t for a single next value). A change
/// below 5 % is never called one.
[[nodiscard]] TrendReport trend(std::span<const double> values, std::size_t window = 30);

/// The value that a Student's t variable with `degrees` of freedom exceeds with probability `tail` (0 < tail
/// < 0.5).
[[nodiscard]] double student_quantile(double tail, unsigned degrees);

} // namespace affinityd::measure

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace affinityd::measure {

/// Pure functions over samples.

/// Mean of rates over equal amounts of work. No value without samples or with one that is not positive and
/// finite.
[[nodiscard]] std::optional<double> harmonic_mean(std::span<const double> samples);
/// No value without samples.
[[nodiscard]] std::optional<double> median(std::span<const double> samples);
/// The value that a Student's t variable with `degrees` of freedom exceeds with probability `tail`
/// (0 < tail < 0.5).
[[nodiscard]] double student_quantile(double tail, unsigned degrees);

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

/// The same of times or costs of equal work, which have arithmetic means: how much longer `changed` takes.
[[nodiscard]] Comparison compare_times(std::span<const double> base, std::span<const double> changed,
                                       unsigned comparisons = 1);

/// Interval of the harmonic mean itself, likewise; no value below least_samples.
[[nodiscard]] std::optional<Interval> mean_interval(std::span<const double> samples);

/// Interval of the arithmetic mean, for costs over equal work and for counts, which may be 0 and never are
/// below; no value below least_samples, or if a sample is negative or not finite.
[[nodiscard]] std::optional<Interval> average_interval(std::span<const double> samples);

/// The probability that of events that are as frequent in both of two spans so many or more fall on the later
/// one. `spread`: how much more their counts scatter than independent events do (variance over mean), at
/// least 1.
[[nodiscard]] double chance_of_more(double earlier, double earlier_span, double later, double later_span,
                                    double spread);

/// The last run against those before it.
enum class Trend {
    unknown, ///< fewer than 8 earlier runs
    steady,
    up,   ///< above what earlier runs predict
    down, ///< below it
};
[[nodiscard]] std::string_view to_string(Trend trend);

struct TrendReport {
    Trend trend = Trend::unknown;
    double median = 0; ///< rolling median of the earlier runs; 0 with unknown
    double low = 0;    ///< the next run is expected between these
    double high = 0;
    double change = 0; ///< last run against the median, relative
};

/// `values` oldest first. The last one is judged by the median of up to `window` earlier runs and by their
/// spread (median absolute deviation as a normal sigma, times Student's t for a single next value). A change
/// below 5 % is always steady.
[[nodiscard]] TrendReport trend(std::span<const double> values, std::size_t window = 30);

// Parts of a whole as people read them. A part that rounds to zero has no minus sign.

/// "35.2" of 0.352, with one digit.
[[nodiscard]] std::string percent(double part, int digits);
/// "+35.2"
[[nodiscard]] std::string signed_percent(double part, int digits);

} // namespace affinityd::measure

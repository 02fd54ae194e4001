// SPDX-License-Identifier: Apache-2.0
#include "measure/statistics.hpp"

#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace affinityd::measure {

namespace {

constexpr double doubt = 0.05; ///< in so many of all experiments a statement may be wrong
constexpr std::size_t least_history = 8;
constexpr double least_change = 0.05;

/// All are above zero and finite.
bool all_positive(std::span<const double> samples) {
    return std::ranges::all_of(samples, [](double sample) { return sample > 0 && std::isfinite(sample); });
}

double mean_of(std::span<const double> samples) {
    return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

/// How far the mean of such samples may be from the true one: standard error.
double error_of_mean(std::span<const double> samples) {
    const double mean = mean_of(samples);
    double squares = 0;
    for (const double sample : samples)
        squares += (sample - mean) * (sample - mean);
    const auto count = static_cast<double>(samples.size());
    return std::sqrt(squares / (count - 1) / count);
}

/// So many standard errors hold the true value in all but `doubt` of the experiments.
double errors_to_each_side(std::size_t samples, unsigned comparisons = 1) {
    return student_quantile(doubt / comparisons / 2, static_cast<unsigned>(samples - 1));
}

std::vector<double> inverses(std::span<const double> rates) {
    std::vector<double> times(rates.size());
    std::ranges::transform(rates, times.begin(), [](double rate) { return 1 / rate; });
    return times;
}

/// Each sample as a part of the mean of its side.
std::vector<double> parts_of_mean(std::vector<double> times) {
    const double mean = mean_of(times);
    for (double& time : times)
        time /= mean;
    return times;
}

/// The standard error of the difference of both means; of pairs, that of their differences.
double error_of_difference(std::vector<double> base, std::span<const double> changed) {
    if (base.size() != changed.size()) return std::hypot(error_of_mean(base), error_of_mean(changed));
    for (std::size_t i = 0; i < base.size(); ++i)
        base[i] -= changed[i];
    return error_of_mean(base);
}

/// How far the logarithm of the ratio of both means may be from the true one. A drift of both sides cancels
/// in the parts of means. A few samples that are far off raise the mean of their side, and make its others
/// look alike: where the differences themselves show nothing, neither does the ratio.
double half_width(std::span<const double> base, std::span<const double> changed, double errors) {
    const auto times = inverses(base), others = inverses(changed);
    const double half = errors * error_of_difference(parts_of_mean(times), parts_of_mean(others));
    const double apart = std::abs(mean_of(times) - mean_of(others));
    const double maybe = errors * error_of_difference(times, others);
    if (apart == 0 || maybe < apart) return half;
    return std::max(half, std::abs(std::log(mean_of(times) / mean_of(others))) * maybe / apart);
}

} // namespace

std::optional<double> harmonic_mean(std::span<const double> samples) {
    if (samples.empty() || !all_positive(samples)) return std::nullopt;
    double inverses = 0;
    for (const double sample : samples)
        inverses += 1 / sample;
    return static_cast<double>(samples.size()) / inverses;
}

std::optional<double> median(std::span<const double> samples) {
    if (samples.empty()) return std::nullopt;
    std::vector<double> sorted(samples.begin(), samples.end());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    if (sorted.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(sorted.begin(), middle)) / 2;
}

double student_quantile(double tail, unsigned degrees) {
    const boost::math::students_t distribution(std::max(1U, degrees));
    return boost::math::quantile(boost::math::complement(distribution, tail));
}

Comparison compare(std::span<const double> base, std::span<const double> changed, unsigned comparisons) {
    Comparison result;
    const auto fewest = std::min(base.size(), changed.size());
    if (fewest < least_samples || comparisons == 0 || !all_positive(base) || !all_positive(changed))
        return result;
    const double ratio = *harmonic_mean(changed) / *harmonic_mean(base);
    const double factor = std::exp(half_width(base, changed, errors_to_each_side(fewest, comparisons)));
    result.change = {ratio - 1, ratio / factor - 1, ratio * factor - 1};
    if (!result.change.excludes_zero())
        result.verdict = Verdict::none_shown;
    else
        result.verdict = result.change.low > 0 ? Verdict::more : Verdict::less;
    return result;
}

Comparison compare_times(std::span<const double> base, std::span<const double> changed,
                         unsigned comparisons) {
    return compare(inverses(changed), inverses(base), comparisons);
}

std::optional<Interval> mean_interval(std::span<const double> samples) {
    if (samples.size() < least_samples || !all_positive(samples)) return std::nullopt;
    const double mean = *harmonic_mean(samples);
    const double factor =
        std::exp(errors_to_each_side(samples.size()) * error_of_mean(parts_of_mean(inverses(samples))));
    return Interval{mean, mean / factor, mean * factor};
}

std::optional<Interval> average_interval(std::span<const double> samples) {
    const auto is_count = [](double sample) { return sample >= 0 && std::isfinite(sample); };
    if (samples.size() < least_samples || !std::ranges::all_of(samples, is_count)) return std::nullopt;
    const double mean = mean_of(samples);
    const double half = errors_to_each_side(samples.size()) * error_of_mean(samples);
    return Interval{mean, std::max(0.0, mean - half), mean + half};
}

double chance_of_more(double earlier, double earlier_span, double later, double later_span, double spread) {
    if (later <= 0 || earlier_span <= 0 || later_span <= 0) return 1;
    const double share = later_span / (earlier_span + later_span);
    return boost::math::ibeta(later / spread, earlier / spread + 1, share); // the tail of a binomial
}

std::string_view to_string(Verdict verdict) {
    constexpr std::array<std::string_view, 4> names{"too few samples", "no difference shown", "more", "less"};
    return names[static_cast<std::size_t>(verdict)];
}

TrendReport trend(std::span<const double> values, std::size_t window) {
    TrendReport report;
    if (values.size() < least_history + 1 || window < least_history) return report;
    const double last = values.back();
    const auto count = std::min(values.size() - 1, window);
    const auto earlier = values.subspan(values.size() - 1 - count, count);
    report.median = *median(earlier);
    std::vector<double> distances;
    for (const double value : earlier)
        distances.push_back(std::abs(value - report.median));
    const double sigma = 1.4826 * *median(distances);
    const auto n = static_cast<double>(count);
    const double reach =
        std::max(student_quantile(0.025, static_cast<unsigned>(count - 1)) * sigma * std::sqrt(1 + 1.57 / n),
                 least_change * std::abs(report.median));
    report.low = report.median - reach;
    report.high = report.median + reach;
    report.change = report.median == 0 ? 0 : last / report.median - 1;
    if (last < report.low)
        report.trend = Trend::down;
    else if (last > report.high)
        report.trend = Trend::up;
    else
        report.trend = Trend::steady;
    return report;
}

std::string_view to_string(Trend trend) {
    constexpr std::array<std::string_view, 4> names{"unknown", "steady", "up", "down"};
    return names[static_cast<std::size_t>(trend)];
}

std::string percent(double part, int digits) {
    auto text = fmt::format("{:.{}f}", 100 * part, digits);
    const bool is_zero = text.find_first_not_of("-0.") == std::string::npos;
    return is_zero && text.front() == '-' ? text.substr(1) : text;
}

std::string signed_percent(double part, int digits) {
    auto text = percent(part, digits);
    return text.front() == '-' ? text : "+" + text;
}

} // namespace affinityd::measure

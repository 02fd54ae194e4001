// SPDX-License-Identifier: Apache-2.0
#include "measure/comparison.hpp"

#include "measure/statistics.hpp"
#include "measure/student.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace affinityd::measure {

namespace {

constexpr double doubt = 0.05; ///< in so many of all experiments a statement may be wrong

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

/// Of what one sample is to the mean of its side, as a part of it.
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

std::string_view to_string(Verdict verdict) {
    switch (verdict) {
    case Verdict::not_enough:
        return "too few samples";
    case Verdict::none_shown:
        return "no difference shown";
    case Verdict::more:
        return "more";
    case Verdict::less:
        return "less";
    }
    return "unknown";
}

} // namespace affinityd::measure

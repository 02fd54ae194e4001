// SPDX-License-Identifier: Apache-2.0
#include "measure/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

namespace affinityd::measure {

namespace {

constexpr std::size_t resamples = 10000;
constexpr std::size_t least_history = 8;
constexpr double least_change = 0.05;

/// splitmix64: the standard's distributions differ between libraries, this does not.
class Random {
  public:
    std::size_t below(std::size_t limit) {
        return static_cast<std::size_t>(next() % limit);
    } // bias < 1e-15 here
  private:
    std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15ULL;
        std::uint64_t mixed = state_;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
        return mixed ^ (mixed >> 31);
    }
    std::uint64_t state_ = 20041116; // the month of the paper's conference
};

bool all_positive(std::span<const double> samples) {
    return std::all_of(samples.begin(), samples.end(),
                       [](double sample) { return sample > 0 && std::isfinite(sample); });
}

std::vector<double> inverses(std::span<const double> samples) {
    std::vector<double> result(samples.size());
    std::transform(samples.begin(), samples.end(), result.begin(), [](double sample) { return 1 / sample; });
    return result;
}

double normal_tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

/// The tail of the percentile interval that stands for a two-sided `alpha` with so few samples.
double widened_tail(double alpha, std::size_t samples) {
    const auto n = static_cast<double>(samples);
    return normal_tail(std::sqrt(n / (n - 1)) *
                       student_quantile(alpha / 2, static_cast<unsigned>(samples - 1)));
}

Interval percentile(std::vector<double>& estimates, double estimate, double tail) {
    std::sort(estimates.begin(), estimates.end());
    const auto last = static_cast<double>(estimates.size() - 1);
    const auto low = static_cast<std::size_t>(std::floor(tail * last));
    const auto high = static_cast<std::size_t>(std::ceil((1 - tail) * last));
    return {estimate, estimates[low], estimates[high]};
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// Both sides drawn anew many times: by the same rounds where they are pairs, else each for itself.
std::vector<double> redraw(const std::vector<double>& base, const std::vector<double>& changed) {
    Random random;
    std::vector<double> estimates(resamples);
    const bool paired = base.size() == changed.size();
    for (auto& estimate : estimates) {
        double of_base = 0, of_changed = 0;
        for (std::size_t i = 0; i < base.size(); ++i) {
            const auto drawn = random.below(base.size());
            of_base += base[drawn];
            if (paired) of_changed += changed[drawn];
        }
        for (std::size_t i = 0; !paired && i < changed.size(); ++i)
            of_changed += changed[random.below(changed.size())];
        estimate = (of_base / static_cast<double>(base.size())) /
                       (of_changed / static_cast<double>(changed.size())) -
                   1;
    }
    return estimates;
}

double student_density(double t, double degrees) {
    const double scale = std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2) -
                         0.5 * std::log(degrees * std::numbers::pi);
    return std::exp(scale - (degrees + 1) / 2 * std::log1p(t * t / degrees));
}

/// P(T > t) for t >= 0: Simpson's rule in u = t/(1+t), which maps the long tail onto a short stretch.
double student_tail(double t, double degrees) {
    constexpr int steps = 400;
    const double from = t / (1 + t);
    const double width = (1 - from) / steps;
    double area = 0;
    for (int i = 0; i <= steps; ++i) {
        const double u = from + width * i;
        if (u >= 1)
            continue; // the density vanishes faster than the map stretches, but for one degree: see below
        const double weight = i == 0 || i == steps ? 1 : (i % 2 == 1 ? 4 : 2);
        area += weight * student_density(u / (1 - u), degrees) / ((1 - u) * (1 - u));
    }
    return area * width / 3;
}

} // namespace

double student_quantile(double tail, unsigned degrees) {
    if (degrees <= 1) return 1 / std::tan(std::numbers::pi * tail); // Cauchy
    double low = 0, high = 1;
    while (student_tail(high, degrees) > tail && high < 1e6)
        high *= 2;
    for (int i = 0; i < 60; ++i) {
        const double middle = (low + high) / 2;
        (student_tail(middle, degrees) > tail ? low : high) = middle;
    }
    return (low + high) / 2;
}

std::optional<double> harmonic_mean(std::span<const double> samples) {
    if (samples.empty() || !all_positive(samples)) return std::nullopt;
    return static_cast<double>(samples.size()) / sum(inverses(samples));
}

std::optional<double> median(std::span<const double> samples) {
    if (samples.empty()) return std::nullopt;
    std::vector<double> sorted(samples.begin(), samples.end());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    if (sorted.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(sorted.begin(), middle)) / 2;
}

Comparison compare(std::span<const double> base, std::span<const double> changed, unsigned comparisons) {
    Comparison result;
    const auto fewest = std::min(base.size(), changed.size());
    if (fewest < least_samples || comparisons == 0 || !all_positive(base) || !all_positive(changed))
        return result;
    const double estimate = *harmonic_mean(changed) / *harmonic_mean(base) - 1;
    auto estimates = redraw(inverses(base), inverses(changed));
    result.change = percentile(estimates, estimate, widened_tail(0.05 / comparisons, fewest));
    if (!result.change.excludes_zero())
        result.verdict = Verdict::none_shown;
    else
        result.verdict = result.change.low > 0 ? Verdict::more : Verdict::less;
    return result;
}

std::optional<Interval> mean_interval(std::span<const double> samples) {
    if (samples.size() < least_samples || !all_positive(samples)) return std::nullopt;
    const auto inverse = inverses(samples);
    Random random;
    std::vector<double> estimates(resamples);
    for (auto& estimate : estimates) {
        double drawn = 0;
        for (std::size_t i = 0; i < inverse.size(); ++i)
            drawn += inverse[random.below(inverse.size())];
        estimate = static_cast<double>(inverse.size()) / drawn;
    }
    return percentile(estimates, *harmonic_mean(samples), widened_tail(0.05, samples.size()));
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

std::string_view to_string(Trend trend) {
    constexpr std::array<std::string_view, 4> names{"unknown", "steady", "up", "down"};
    return names[static_cast<std::size_t>(trend)];
}

} // namespace affinityd::measure

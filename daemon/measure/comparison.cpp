// SPDX-License-Identifier: Apache-2.0
#include "measure/comparison.hpp"

#include "measure/statistics.hpp"
#include "measure/student.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <vector>

namespace affinityd::measure {

namespace {

constexpr std::size_t usual_resamples = 10000;

/// splitmix64. The standard library does not fix its distributions; this sequence is the same everywhere.
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

std::vector<double> inverses(std::span<const double> samples) {
    std::vector<double> result(samples.size());
    std::transform(samples.begin(), samples.end(), result.begin(), [](double sample) { return 1 / sample; });
    return result;
}

double normal_tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

/// The tail to cut on each side so that the percentile interval of so few samples has the two-sided level
/// `alpha`.
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

/// Resamples both sides: the same rounds where they are pairs, else each side by itself.
std::vector<double> redraw(const std::vector<double>& base, const std::vector<double>& changed) {
    Random random;
    std::vector<double> estimates(usual_resamples);
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

} // namespace

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

std::optional<Interval> mean_interval(std::span<const double> samples, std::size_t resamples) {
    if (samples.size() < least_samples || !all_positive(samples)) return std::nullopt;
    const auto inverse = inverses(samples);
    Random random;
    std::vector<double> estimates(std::max<std::size_t>(resamples, 100));
    for (auto& estimate : estimates) {
        double drawn = 0;
        for (std::size_t i = 0; i < inverse.size(); ++i)
            drawn += inverse[random.below(inverse.size())];
        estimate = static_cast<double>(inverse.size()) / drawn;
    }
    return percentile(estimates, *harmonic_mean(samples), widened_tail(0.05, samples.size()));
}

std::optional<Interval> average_interval(std::span<const double> samples) {
    const auto is_count = [](double sample) { return sample >= 0 && std::isfinite(sample); };
    if (samples.size() < least_samples || !std::ranges::all_of(samples, is_count)) return std::nullopt;
    const auto count = static_cast<double>(samples.size());
    Random random;
    std::vector<double> estimates(usual_resamples);
    for (auto& estimate : estimates) {
        double drawn = 0;
        for (std::size_t i = 0; i < samples.size(); ++i)
            drawn += samples[random.below(samples.size())];
        estimate = drawn / count;
    }
    const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
    return percentile(estimates, mean, widened_tail(0.05, samples.size()));
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

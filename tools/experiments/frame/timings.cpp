// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame/timings.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace affinityd::experiments {

namespace {

std::vector<double> rates_of_times(std::span<const double> seconds) {
    std::vector<double> rates(seconds.size());
    std::ranges::transform(seconds, rates.begin(), [](double time) { return 1 / time; });
    return rates;
}

} // namespace

std::optional<measure::Interval> mean_time(std::span<const double> seconds) {
    const auto rate = measure::mean_interval(rates_of_times(seconds));
    if (!rate) return std::nullopt;
    return measure::Interval{1 / rate->estimate, 1 / rate->high, 1 / rate->low};
}

measure::Comparison how_much_longer(std::span<const double> base, std::span<const double> other,
                                    unsigned comparisons) {
    // The harmonic mean of rates is the inverse of the mean time: base is the "changed" one here.
    return measure::compare(rates_of_times(other), rates_of_times(base), comparisons);
}

std::string time_words(double seconds) {
    if (!(seconds >= 1)) return "under 1 s";
    if (seconds < 99.5) return std::to_string(std::lround(seconds)) + " s";
    const auto minutes = std::lround(std::fmin(seconds, 1e9) / 60);
    if (minutes < 100) return std::to_string(minutes) + " min";
    const auto rest = minutes % 60;
    return std::to_string(minutes / 60) + " h" + (rest == 0 ? "" : " " + std::to_string(rest) + " min");
}

} // namespace affinityd::experiments

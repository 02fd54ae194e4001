// SPDX-License-Identifier: Apache-2.0
#include "measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace affinityd::measure {

bool all_positive(std::span<const double> samples) {
    return std::ranges::all_of(samples, [](double sample) { return sample > 0 && std::isfinite(sample); });
}

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

} // namespace affinityd::measure

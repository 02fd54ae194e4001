// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace affinityd::measure {

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

} // namespace affinityd::measure

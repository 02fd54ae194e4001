// SPDX-License-Identifier: Apache-2.0
#include "measure/trend.hpp"

#include "measure/statistics.hpp"
#include "measure/student.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace affinityd::measure {

namespace {

constexpr std::size_t least_history = 8;
constexpr double least_change = 0.05;

} // namespace

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

} // namespace affinityd::measure

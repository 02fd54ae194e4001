// SPDX-License-Identifier: Apache-2.0
#include "history_chart.hpp"

#include "svg.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>

namespace affinityctl {

namespace {

constexpr double left = 70, top = 50, wide = 800, high = 260;

struct Range {
    double low = 0, high = 0;
    bool any = false;
};

Range rates_of(const std::vector<HistoryPoint>& points) {
    Range range;
    for (const auto& point : points) {
        if (!point.done) continue;
        range.low = range.any ? std::min(range.low, point.rate) : point.rate;
        range.high = std::max(range.high, point.rate);
        range.any = true;
    }
    return range;
}

} // namespace

std::string local_time(long long seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    tm parts{};
    ::localtime_r(&time, &parts);
    std::array<char, 40> text{};
    return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
}

std::string sparkline(const std::vector<HistoryPoint>& points, bool unicode) {
    constexpr std::array steps{"\u2581", "\u2582", "\u2583", "\u2584",
                               "\u2585", "\u2586", "\u2587", "\u2588"};
    const auto range = rates_of(points);
    std::string text;
    for (const auto& point : points) {
        if (!point.done) {
            text += 'x';
            continue;
        }
        const double part =
            range.high > range.low ? (point.rate - range.low) / (range.high - range.low) : 0.5;
        const auto step =
            std::min<std::size_t>(steps.size() - 1, static_cast<std::size_t>(part * steps.size()));
        text += unicode ? std::string(steps[step]) : std::string(1, static_cast<char>('1' + step));
    }
    return text;
}

std::string history_svg(const std::vector<HistoryPoint>& points, const std::string& path,
                        const nlohmann::json& trend) {
    Svg svg(left + wide + 110, top + high + 60, "Throughput over time");
    svg.text(left, 28, fmt::format("Throughput over {}, Gbit/s", path), 16);
    const auto range = rates_of(points);
    const double most = std::max({range.high, trend.value("high", 0.0), 1.0}) * 1.05;
    const auto y_of = [&](double rate) { return top + high - std::max(0.0, rate) / most * high; };
    svg.line(left, top, left, top + high, "black");
    svg.line(left, top + high, left + wide, top + high, "black");
    for (int i = 0; i <= 4; ++i) {
        const double rate = most / 4 * i;
        svg.text(left - 6, y_of(rate) + 4, fmt::format("{:.2f}", rate / 1e9), 11, Svg::Anchor::end);
        if (i > 0) svg.line(left, y_of(rate), left + wide, y_of(rate), "#dddddd");
    }
    if (trend.value("direction", "unknown") != "unknown") {
        svg.rect(left, y_of(trend.value("high", 0.0)), wide,
                 y_of(trend.value("low", 0.0)) - y_of(trend.value("high", 0.0)), "#dbe9f6");
        svg.line(left, y_of(trend.value("median", 0.0)), left + wide, y_of(trend.value("median", 0.0)),
                 "#0072b2");
        svg.text(left + wide + 6, y_of(trend.value("median", 0.0)) + 4, "median", 11);
    }
    if (points.empty()) return svg.finish();
    const double first = static_cast<double>(points.front().time);
    const double span = std::max(1.0, static_cast<double>(points.back().time) - first);
    for (const auto& point : points) {
        // A clock that was set back must not draw to the left of the chart.
        const double x = left + std::clamp((static_cast<double>(point.time) - first) / span, 0.0, 1.0) * wide;
        if (point.done)
            svg.circle(x, y_of(point.rate), 3, "#0072b2");
        else
            svg.text(x, top + high - 3, "x", 12, Svg::Anchor::middle);
    }
    svg.text(left, top + high + 20, local_time(points.front().time), 11);
    svg.text(left + wide, top + high + 20, local_time(points.back().time), 11, Svg::Anchor::end);
    svg.text(left, top + high + 42,
             "Shaded: where the last run was expected by the runs before it. x: failed or skipped.", 11);
    return svg.finish();
}

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/history_chart.hpp"

#include "affinityctl/views/svg.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityctl {

namespace {

constexpr double left = 70, top = 50, wide = 800, high = 260;

/// The vertical place of a rate.
struct Scale {
    double most = 1;
    [[nodiscard]] double y(double rate) const { return top + high - std::max(0.0, rate) / most * high; }
};

void draw_axes(Svg& svg, const Scale& scale) {
    svg.line(left, top, left, top + high, "black");
    svg.line(left, top + high, left + wide, top + high, "black");
    for (int i = 0; i <= 4; ++i) {
        const double rate = scale.most / 4 * i;
        svg.text(left - 6, scale.y(rate) + 4, fmt::format("{:.2f}", rate / 1e9), 11, Svg::Anchor::end);
        if (i > 0) svg.line(left, scale.y(rate), left + wide, scale.y(rate), "#dddddd");
    }
}

void draw_trend(Svg& svg, const Scale& scale, const nlohmann::json& trend) {
    if (trend.value("direction", "unknown") == "unknown") return;
    const double above = scale.y(trend.value("high", 0.0)), below = scale.y(trend.value("low", 0.0));
    const double median = scale.y(trend.value("median", 0.0));
    svg.rect(left, above, wide, below - above, "#dbe9f6");
    svg.line(left, median, left + wide, median, "#0072b2");
    svg.text(left + wide + 6, median + 4, "median", 11);
}

void draw_points(Svg& svg, const Scale& scale, const std::vector<HistoryPoint>& points) {
    const double first = static_cast<double>(points.front().time);
    const double span = std::max(1.0, static_cast<double>(points.back().time) - first);
    for (const auto& point : points) {
        // After the clock was set back a run may seem older than the first one.
        const double x = left + std::clamp((static_cast<double>(point.time) - first) / span, 0.0, 1.0) * wide;
        if (point.done)
            svg.circle(x, scale.y(point.rate), 3, "#0072b2");
        else
            svg.text(x, top + high - 3, "x", 12, Svg::Anchor::middle);
    }
    svg.text(left, top + high + 20, local_time(points.front().time), 11);
    svg.text(left + wide, top + high + 20, local_time(points.back().time), 11, Svg::Anchor::end);
}

} // namespace

std::string history_svg(const std::vector<HistoryPoint>& points, const std::string& path,
                        const nlohmann::json& trend) {
    Svg svg(left + wide + 110, top + high + 60, "Throughput over time");
    const auto of_path = path.empty() ? std::string() : " over " + path; // a failed run may have none
    if (points.empty()) {
        svg.text(left, 28, "Throughput" + of_path + ": none is among these measurements", 16);
        return svg.finish();
    }
    svg.text(left, 28, fmt::format("Throughput{}, Gbit/s", of_path), 16);
    const Scale scale{std::max({rates_of(points).high, trend.value("high", 0.0), 1.0}) * 1.05};
    draw_axes(svg, scale);
    draw_trend(svg, scale, trend);
    draw_points(svg, scale, points);
    svg.text(left, top + high + 42,
             "Shaded: the range that earlier runs predict for the last one. x: failed or skipped.", 11);
    return svg.finish();
}

} // namespace affinityctl

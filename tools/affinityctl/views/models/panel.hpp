// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/svg.hpp"
#include "affinityctl/views/models/work_view.hpp"
#include "measure/statistics.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityctl {

/// The curve on a terminal, a bar for each size and model, all on one scale; the longest has `width` columns.
/// Throughput: '#' up to the low end of the interval and '+' through it. Latency: '#' up to the median and
/// '+' up to the 99th percentile. "" where no model has an interval.
[[nodiscard]] std::string bars(const WorkView& view, const std::vector<std::string>& labels, unsigned width);

/// One curve of a panel: an interval at each position, none where nothing is known.
struct Curve {
    std::string_view color;
    std::vector<std::optional<affinityd::measure::Interval>> points;
};

/// Curves over positions with names (sizes), which stand at equal distances. Pixels.
struct Panel {
    std::string title;
    std::vector<std::string> positions;
    std::vector<Curve> curves;
    bool is_log = false; ///< the vertical axis doubles from line to line; else it is linear and holds zero
};

inline constexpr double panel_width = 290, panel_height = 270; ///< all of it, with title and axes

void draw_panel(Svg& svg, double x, double y, const Panel& panel);

/// Values for lines across a linear axis from `low` to `high`: round ones (1, 2 or 5 times a power of ten),
/// at most seven, the first not above `low` and the last not below `high`.
[[nodiscard]] std::vector<double> round_steps(double low, double high);

} // namespace affinityctl

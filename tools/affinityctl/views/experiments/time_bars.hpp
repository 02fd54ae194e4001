// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/page.hpp"
#include "measure/comparison.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace affinityctl {

/// One mean time with its interval.
struct TimeBar {
    std::string label;
    std::optional<affinityd::measure::Interval> seconds; ///< no value: no bar
    std::string note;                                    ///< behind the bar of a picture
    unsigned kind = 0;                                   ///< bars of one kind have one colour
};

/// As lines for a terminal, the longest as wide as the page allows: '#' up to the low end of the interval,
/// '+' through it. "" without any time.
[[nodiscard]] std::string time_bars(std::span<const TimeBar> bars, const Page& page);

/// What stands above and below the bars.
struct BarCaptions {
    std::string title, subtitle;
    std::vector<std::string> notes; ///< sentences
};
/// As an SVG document; bars begin at zero, whiskers are the intervals.
[[nodiscard]] std::string time_bars_svg(const BarCaptions& captions, std::span<const TimeBar> bars);

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/page.hpp"
#include "measure/statistics.hpp"

#include <nlohmann/json.hpp>
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

/// Texts above and below the bars.
struct BarCaptions {
    std::string title, subtitle;
    std::vector<std::string> notes; ///< sentences
};
/// As an SVG document; bars begin at zero, whiskers are the intervals.
[[nodiscard]] std::string time_bars_svg(const BarCaptions& captions, std::span<const TimeBar> bars);

// Figures of experiments as all of them show them.

/// "3.53 (3.41 to 3.66)", of seconds as milliseconds; "-" for no value.
[[nodiscard]] std::string ms_words(const std::optional<affinityd::measure::Interval>& seconds);
/// "+75 % (71 to 79)", "no difference shown", "too few samples".
[[nodiscard]] std::string change_words(const affinityd::measure::Comparison& longer);

/// {"mean", "low", "high"} in milliseconds, or null.
[[nodiscard]] nlohmann::json ms_json(const std::optional<affinityd::measure::Interval>& seconds);
/// {"verdict", "estimate", "low", "high"}, relative; null where nothing could be compared.
[[nodiscard]] nlohmann::json change_json(const affinityd::measure::Comparison& longer);

/// A sentence of a list: with a capital and a full stop.
[[nodiscard]] std::string as_sentence(std::string words);

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/figure_words.hpp"

#include "affinityctl/present/svg.hpp"
#include "measure/statistics.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

namespace affinityctl {

namespace measure = affinityd::measure;
using nlohmann::json;

namespace {
/// Three digits that say something.
std::string three_digits(double value) {
    return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}
} // namespace

std::string ms_words(const std::optional<measure::Interval>& seconds) {
    if (!seconds) return "-";
    return fmt::format("{} ({} to {})", three_digits(seconds->estimate * 1e3),
                       three_digits(seconds->low * 1e3), three_digits(seconds->high * 1e3));
}

std::string change_words(const measure::Comparison& longer) {
    if (longer.verdict == measure::Verdict::none_shown || longer.verdict == measure::Verdict::not_enough)
        return std::string(to_string(longer.verdict));
    const auto& change = longer.change;
    const int digits = change.high - change.low < 0.05 ? 1 : 0;
    return fmt::format("{} % ({} to {})", measure::signed_percent(change.estimate, digits),
                       measure::signed_percent(change.low, digits),
                       measure::signed_percent(change.high, digits));
}

json ms_json(const std::optional<measure::Interval>& seconds) {
    if (!seconds) return {};
    return {{"mean", seconds->estimate * 1e3}, {"low", seconds->low * 1e3}, {"high", seconds->high * 1e3}};
}

json change_json(const measure::Comparison& longer) {
    if (longer.verdict == measure::Verdict::not_enough) return {};
    return {{"verdict", to_string(longer.verdict)},
            {"estimate", longer.change.estimate},
            {"low", longer.change.low},
            {"high", longer.change.high}};
}

std::string as_sentence(std::string words) {
    if (words.empty()) return words;
    words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
    if (words.back() != '.') words += '.';
    return words;
}

namespace {

constexpr std::size_t usual_columns = 80, least_columns = 10;
constexpr double bars_left = 210, bars_width = 400, bars_height = 24, bars_gap = 12, bars_page = 960,
                 bars_margin = 24, note_size = 12;
/// Told apart without colour, too: by brightness. Labels say which is which.
constexpr std::array bar_colors{"#7a7a7a", "#0072b2", "#e69f00", "#009e73", "#c9a9c6"};

double longest_of(std::span<const TimeBar> bars) {
    double longest = 0;
    for (const auto& bar : bars)
        if (bar.seconds) longest = std::max(longest, bar.seconds->high);
    return longest;
}

void draw_time_bar(Svg& svg, const TimeBar& bar, double y, double scale) {
    const double middle = y + bars_height / 2;
    svg.text(bars_left - 8, middle + 4, bar.label, 13, Svg::Anchor::end);
    if (!bar.seconds) return;
    const auto& time = *bar.seconds;
    svg.rect(bars_left, y, time.estimate * scale, bars_height, bar_colors[bar.kind % bar_colors.size()]);
    svg.line(bars_left + time.low * scale, middle, bars_left + time.high * scale, middle, "black", 1.5);
    for (const double end : {time.low, time.high})
        svg.line(bars_left + end * scale, middle - 5, bars_left + end * scale, middle + 5, "black", 1.5);
    svg.text(bars_left + time.high * scale + 8, middle + 4,
             ms_words(bar.seconds) + " ms" + (bar.note.empty() ? "" : "; " + bar.note), 11);
}

} // namespace

std::string time_bars(std::span<const TimeBar> bars, const Page& page) {
    const double longest = longest_of(bars);
    if (longest <= 0) return {};
    std::size_t labels = 0;
    for (const auto& bar : bars)
        labels = std::max(labels, columns_of(bar.label));
    const std::size_t width = page.width == 0 ? usual_columns : page.width;
    const std::size_t columns = std::max(least_columns, width > labels + 2 ? width - labels - 2 : 0);
    const auto cells = [&](double seconds) {
        return static_cast<std::size_t>(std::lround(seconds / longest * static_cast<double>(columns)));
    };
    std::string text;
    for (const auto& bar : bars) {
        if (!bar.seconds) continue;
        text += bar.label + std::string(labels - columns_of(bar.label) + 2, ' ') +
                std::string(cells(bar.seconds->low), '#') +
                std::string(cells(bar.seconds->high) - cells(bar.seconds->low), '+') + "\n";
    }
    return text;
}

std::string time_bars_svg(const BarCaptions& captions, std::span<const TimeBar> bars) {
    const double room = bars_page - 2 * bars_margin;
    const auto notes = note_lines(captions.notes, room, note_size);
    const auto subtitle = note_lines(std::span(&captions.subtitle, 1), room, note_size);
    const double bars_top = 59 + note_leading * static_cast<double>(subtitle.size());
    const double bottom = bars_top + static_cast<double>(bars.size()) * (bars_height + bars_gap);
    Svg svg(bars_page, bottom + 34 + note_leading * static_cast<double>(notes.size()), captions.title);
    svg.text(bars_margin, 30, captions.title, 17);
    draw_notes(svg, bars_margin, 33, subtitle, note_size);
    const double longest = longest_of(bars);
    const double scale = longest > 0 ? bars_width / longest : 0;
    double y = bars_top;
    for (const auto& bar : bars) {
        draw_time_bar(svg, bar, y, scale);
        y += bars_height + bars_gap;
    }
    svg.line(bars_left, bars_top - 6, bars_left, bottom - 4, "black");
    draw_notes(svg, bars_margin, bottom, notes, note_size);
    return svg.finish();
}

} // namespace affinityctl

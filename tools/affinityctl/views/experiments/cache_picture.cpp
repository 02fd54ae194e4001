// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/cache_picture.hpp"

#include "affinityctl/views/experiments/figure_words.hpp"
#include "affinityctl/views/picture_notes.hpp"
#include "affinityctl/views/svg.hpp"
#include "measure/percent.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
namespace measure = affinityd::measure;
using experiments::Place;

namespace {

constexpr double curve_left = 70, curve_width = 250, curve_gap = 60, curve_top = 126, curve_height = 240;
constexpr double least_sheet_width = 960, edge = 24, legend_y = 92, mark = 4;
constexpr std::array curve_colors{"#000000", "#7a7a7a", "#000000", "#0072b2", "#b35900", "#007a5a"};

/// Where a value stands in a panel; all panels have one scale.
struct CurveScale {
    double most = 0.01; ///< the largest loss, relative
    double least = 0;   ///< the smallest, not above zero
    std::uint64_t from = 1, to = 2;
    double left = 0;
    [[nodiscard]] double x(std::uint64_t bytes) const {
        const double range = std::max(0.1, std::log2(static_cast<double>(to) / static_cast<double>(from)));
        return left + curve_width * std::log2(static_cast<double>(bytes) / static_cast<double>(from)) / range;
    }
    [[nodiscard]] double y(double loss) const {
        const double bounded = std::clamp(loss, least, most);
        return curve_top + curve_height * (most - bounded) / (most - least);
    }
};

/// A circle, a square, a cross or a triangle, by place.
void draw_mark(Svg& svg, Place place, double x, double y) {
    const auto* color = curve_colors[static_cast<std::size_t>(place)];
    switch (place) {
    case Place::kept:
    case Place::group:
        svg.circle(x, y, mark, color);
        break;
    case Place::displaced:
        svg.rect(x - mark, y - mark, 2 * mark, 2 * mark, color);
        break;
    case Place::emptied:
        svg.line(x - mark, y - mark, x + mark, y + mark, color, 2);
        svg.line(x - mark, y + mark, x + mark, y - mark, color, 2);
        break;
    case Place::other_llc:
        svg.line(x - mark - 1, y, x + mark + 1, y, color, 3);
        svg.line(x, y - mark - 1, x, y + mark + 1, color, 3);
        break;
    case Place::other_node:
        svg.line(x - mark, y + mark, x + mark, y + mark, color, 2);
        svg.line(x - mark, y + mark, x, y - mark, color, 2);
        svg.line(x + mark, y + mark, x, y - mark, color, 2);
        break;
    }
}

CurveScale curve_scale(const CacheView& view) {
    CurveScale scale;
    scale.from = view.times.how.footprints.front();
    scale.to = view.times.how.footprints.back();
    for (const auto& cell : view.reading.cells) {
        if (cell.longer.verdict == measure::Verdict::not_enough) continue;
        scale.most = std::max(scale.most, cell.longer.change.estimate * 1.1);
        scale.least = std::min(scale.least, cell.longer.change.estimate * 1.1);
    }
    return scale;
}

/// Round steps, so that there are some five lines.
double step_of(const CurveScale& scale) {
    double step = 0.001;
    for (const double factor : {2.0, 2.5, 2.0, 2.0, 2.5, 2.0, 2.0, 2.5, 2.0, 2.0, 2.5, 2.0})
        if ((scale.most - scale.least) / step > 6) step *= factor;
    return step;
}

void draw_axes(Svg& svg, const CacheView& view, const CurveScale& scale, double quantum) {
    svg.text(scale.left + curve_width / 2, curve_top - 10, fmt::format("every {:g} ms", quantum), 13,
             Svg::Anchor::middle);
    const double step = step_of(scale);
    for (double loss = std::ceil(scale.least / step) * step; loss <= scale.most; loss += step) {
        svg.line(scale.left, scale.y(loss), scale.left + curve_width, scale.y(loss),
                 std::abs(loss) < step / 2 ? "black" : "#d0d0d0");
        svg.text(scale.left - 6, scale.y(loss) + 4, measure::percent(loss, step < 0.0095 ? 1 : 0) + " %", 11,
                 Svg::Anchor::end);
    }
    const auto& footprints = view.times.how.footprints;
    for (std::size_t i = 0; i < footprints.size(); ++i) {
        const double x = scale.x(footprints[i]);
        svg.line(x, curve_top + curve_height, x, curve_top + curve_height + 4, "black");
        if (i % 2 == 0) // every other one: else they would overlap
            svg.text(x, curve_top + curve_height + 18, experiments::bytes_words(footprints[i]), 10,
                     Svg::Anchor::middle);
    }
}

void draw_curves(Svg& svg, const CacheView& view, const CurveScale& scale, double quantum) {
    for (const Place place : experiments::places) {
        double last_x = 0, last_y = 0;
        const auto* color = curve_colors[static_cast<std::size_t>(place)];
        for (const auto& cell : view.reading.cells) { // by footprint
            if (cell.place != place || cell.quantum_ms != quantum ||
                cell.longer.verdict == measure::Verdict::not_enough)
                continue;
            const double x = scale.x(cell.footprint), y = scale.y(cell.longer.change.estimate);
            if (last_x > 0) svg.line(last_x, last_y, x, y, color, 1.5);
            svg.line(x, scale.y(cell.longer.change.low), x, scale.y(cell.longer.change.high), color, 0.8);
            draw_mark(svg, place, x, y);
            last_x = x;
            last_y = y;
        }
    }
}

void draw_legend(Svg& svg, const CacheView& view) {
    double x = curve_left;
    for (const Place place : experiments::places) {
        if (place == Place::kept || !view.seats.of(place)) continue;
        draw_mark(svg, place, x + mark, legend_y - 4);
        const auto name = name_of(place);
        svg.text(x + 14, legend_y, name, 12);
        x += 40 + 7 * static_cast<double>(name.size());
    }
}

} // namespace

std::string cache_svg(const CacheView& view, const MeasuredOn& on) {
    auto sentences = cache_sentences(view, on);
    for (const auto& finding : view.reading.findings)
        sentences.push_back(as_sentence(finding));
    sentences.push_back(view.reading.meaning);
    const auto& quanta = view.times.how.quanta_ms;
    const double width = std::max(least_sheet_width, curve_left + static_cast<double>(quanta.size()) *
                                                                      (curve_width + curve_gap));
    const auto notes = note_lines(sentences, width - 2 * edge, 12);
    const double y = curve_top + curve_height + 44;
    Svg svg(width, y + 24 + note_leading * static_cast<double>(notes.size()), cache_title(on));
    svg.text(edge, 28, cache_title(on) + ": how much longer the next quantum takes, by working set", 16);
    const auto method = cache_method(view, on);
    draw_notes(svg, edge, 33, note_lines(std::span(&method, 1), width - 2 * edge, 11), 11);
    draw_legend(svg, view);
    CurveScale scale = curve_scale(view);
    scale.left = curve_left;
    for (const double quantum : quanta) {
        draw_axes(svg, view, scale, quantum);
        draw_curves(svg, view, scale, quantum);
        scale.left += curve_width + curve_gap;
    }
    draw_notes(svg, edge, y, notes, 12);
    return svg.finish();
}

} // namespace affinityctl

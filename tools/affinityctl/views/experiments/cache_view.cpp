// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/cache_view.hpp"

#include "affinityctl/present/svg.hpp"
#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/experiments/figure_words.hpp"
#include "affinityctl/views/table.hpp"
#include "measure/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
namespace measure = affinityd::measure;
using experiments::Place;
using nlohmann::json;

namespace {

std::vector<Place> places_of(const CacheView& view) {
    std::vector<Place> found;
    for (const Place place : experiments::places)
        if (view.seats.of(place)) found.push_back(place);
    return found;
}

const experiments::CellFigures* cell_of(const CacheView& view, std::uint64_t footprint, double quantum,
                                        Place place) {
    const auto found = std::ranges::find_if(view.reading.cells, [&](const experiments::CellFigures& cell) {
        return cell.footprint == footprint && cell.quantum_ms == quantum && cell.place == place;
    });
    return found == view.reading.cells.end() ? nullptr : &*found;
}

/// One quantum: a row for each working set, a column for each place.
std::string quantum_table(const CacheView& view, double quantum, const Page& page) {
    std::vector<std::string> head{"WORKING SET", "MS, SAME CPU"};
    for (const Place place : places_of(view))
        if (place != Place::kept) head.emplace_back(name_of(place));
    Table table(head);
    for (const auto footprint : view.times.how.footprints) {
        std::vector<std::string> row{experiments::bytes_words(footprint)};
        for (const Place place : places_of(view)) {
            const auto* cell = cell_of(view, footprint, quantum, place);
            if (cell == nullptr) continue;
            row.push_back(place == Place::kept ? ms_words(cell->seconds) : change_words(cell->longer));
        }
        table.add(row);
    }
    return fmt::format("Interrupted every {:g} ms: how much longer the next quantum takes\n", quantum) +
           table.folded(page) + "\n";
}

/// The curve of the shortest quantum, where losses are largest: one bar for each working set and place.
std::string loss_bars(const CacheView& view, const Page& page) {
    constexpr std::size_t label_columns = 36, usual_page = 80;
    const double quantum = *std::ranges::min_element(view.times.how.quanta_ms);
    double most = 0.01;
    for (const auto& cell : view.reading.cells)
        if (cell.quantum_ms == quantum) most = std::max(most, cell.longer.change.estimate);
    const std::size_t width = page.width == 0 ? usual_page : page.width;
    const auto columns = static_cast<double>(width > label_columns + 16 ? width - label_columns - 8 : 8);
    std::string text = fmt::format("The same as bars, every {:g} ms\n", quantum);
    for (const Place place : places_of(view)) {
        if (place == Place::kept) continue;
        for (const auto footprint : view.times.how.footprints) {
            const auto* cell = cell_of(view, footprint, quantum, place);
            if (cell == nullptr || cell->longer.verdict == measure::Verdict::not_enough) continue;
            const double loss = std::max(0.0, cell->longer.change.estimate);
            text +=
                fmt::format("{:<22} {:>10}  {} {} %\n", name_of(place), experiments::bytes_words(footprint),
                            std::string(static_cast<std::size_t>(std::lround(loss / most * columns)), '#'),
                            measure::percent(cell->longer.change.estimate, 1));
        }
    }
    return text + "\n";
}

std::string loss_table(const CacheView& view, const Page& page) {
    Table table({"QUANTUM", "WAS ON", "ON AVERAGE", "MOST", "AT", "SHOWN FOR"});
    for (const auto& loss : view.reading.losses)
        if (loss.of > 0)
            table.add({fmt::format("{:g} ms", loss.quantum_ms), std::string(name_of(loss.place)),
                       change_words(loss.mean), measure::signed_percent(loss.most, 1) + " %",
                       experiments::bytes_words(loss.at), fmt::format("{} of {}", loss.costly, loss.of)});
    return table.empty() ? std::string() : table.folded(page, 2) + "\n";
}

} // namespace

std::string cache_title(const MeasuredOn& on) {
    return "What it costs to lose the cache" +
           (on.model.empty() ? std::string() : " (" + printable(on.model) + ")");
}

std::string cache_method(const CacheView& view, const MeasuredOn& on) {
    return fmt::format("L1d {}, core's own {}, last level {}; polluter {}; CPU {}; {}; CPU time of "
                       "the quantum after an "
                       "interruption against one that left the cache alone; it took {:.0f} s",
                       experiments::bytes_words(view.seats.sizes.first),
                       experiments::bytes_words(view.seats.sizes.own),
                       experiments::bytes_words(view.seats.sizes.last),
                       experiments::bytes_words(view.times.how.polluter_bytes), view.seats.home,
                       counted(view.times.how.rounds, "round"), on.seconds);
}

std::vector<std::string> cache_sentences(const CacheView& view, const MeasuredOn& on) {
    std::vector<std::string> all;
    for (const auto& sentence : view.seats.refused)
        all.push_back(as_sentence(sentence));
    if (view.times.disturbed > 0)
        all.push_back(counted(view.times.disturbed, "quantum", "quanta") +
                      " had another program on the CPU.");
    for (const auto& remark : on.remarks)
        all.push_back(as_sentence(remark));
    return all;
}

std::string cache_text(const CacheView& view, const MeasuredOn& on, const Page& page) {
    auto text = bold(cache_title(on), page.color) + "\n" + wrapped(cache_method(view, on), "  ", page) + "\n";
    for (const double quantum : view.times.how.quanta_ms)
        text += quantum_table(view, quantum, page);
    text += loss_bars(view, page) + loss_table(view, page);
    for (const auto& sentence : cache_sentences(view, on))
        text += wrapped(sentence, "* ", page);
    text += wrapped("Verdict: " + std::string(name_of(view.reading.width)), "", page);
    return text + wrapped(view.reading.meaning, "", page);
}

json cache_json(const CacheView& view, const MeasuredOn& on) {
    json cells = json::array(), losses = json::array(), seats = json::object();
    for (const auto& cell : view.reading.cells)
        cells.push_back({{"bytes", cell.footprint},
                         {"quantum_ms", cell.quantum_ms},
                         {"place", key_of(cell.place)},
                         {"ms", ms_json(cell.seconds)},
                         {"longer_than_kept", change_json(cell.longer)}});
    for (const auto& loss : view.reading.losses)
        losses.push_back({{"quantum_ms", loss.quantum_ms},
                          {"place", key_of(loss.place)},
                          {"mean", change_json(loss.mean)},
                          {"most", loss.of > 0 ? json(loss.most) : json()},
                          {"at_bytes", loss.at},
                          {"shown", loss.costly},
                          {"of", loss.of}});
    for (const Place place : places_of(view))
        seats[key_of(place)] = *view.seats.of(place);
    return {{"model", on.model},
            {"cpus", on.cpus},
            {"places", std::move(seats)},
            {"l1d_bytes", view.seats.sizes.first},
            {"own_bytes", view.seats.sizes.own},
            {"llc_bytes", view.seats.sizes.last},
            {"polluter_bytes", view.times.how.polluter_bytes},
            {"rounds", view.times.how.rounds},
            {"cells", std::move(cells)},
            {"losses", std::move(losses)},
            {"verdict", name_of(view.reading.width)},
            {"refused", view.seats.refused},
            {"disturbed", view.times.disturbed},
            {"findings", view.reading.findings},
            {"meaning", view.reading.meaning},
            {"remarks", on.remarks},
            {"seconds", on.seconds}};
}

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

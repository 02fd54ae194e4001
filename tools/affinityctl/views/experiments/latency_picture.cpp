// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/latency_picture.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/experiments/latency_map.hpp"
#include "affinityctl/views/heat_shades.hpp"
#include "affinityctl/views/picture_notes.hpp"
#include "affinityctl/views/svg.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace affinityctl {

namespace topology = affinityd::topology;

namespace {

constexpr double map_left = 150, map_top = 96, map_side = 768, map_right = 60, least_cell = 2, most_cell = 42;
constexpr double readable_cell = 10,
                 figure_cell = 26; ///< from where on cells have numbers beside, and in them
constexpr double least_label = 11; ///< height of a group whose CPUs are named
constexpr std::size_t shades = 32, scale_steps = 32, label_letters = 20;
constexpr const char* frame_color = "#20262e";

double quantized(double share) { return std::ceil(share * shades) / shades; }

/// One rectangle for neighbours of the same shade: a map of 256 CPUs has 65,536 cells.
void draw_cells(Svg& svg, const LatencyMap& map, double cell) {
    const double seam = cell >= readable_cell ? 1 : 0;
    for (std::size_t row = 0; row < map.names.size(); ++row)
        for (std::size_t column = 0; column < map.names.size();) {
            const double shade = quantized(shade_of_ns(map, map.ns[row][column]));
            std::size_t end = column + 1;
            while (seam == 0 && end < map.names.size() &&
                   quantized(shade_of_ns(map, map.ns[row][end])) == shade)
                ++end;
            if (shade > 0)
                svg.rect(map_left + cell * static_cast<double>(column),
                         map_top + cell * static_cast<double>(row),
                         cell * static_cast<double>(end - column) - seam, cell - seam, heat_color(shade));
            column = end;
        }
}

void draw_figures(Svg& svg, const LatencyMap& map, double cell) {
    for (std::size_t row = 0; row < map.names.size(); ++row)
        for (std::size_t column = 0; column < map.names.size(); ++column)
            if (const auto& ns = map.ns[row][column])
                svg.text(map_left + cell * (static_cast<double>(column) + 0.5),
                         map_top + cell * (static_cast<double>(row) + 0.5) + 4, fmt::format("{:.0f}", *ns),
                         11, Svg::Anchor::middle);
}

/// Of every CPU, or where there is no room for that, of some.
void draw_numbers(Svg& svg, const LatencyMap& map, double cell) {
    const double letters = std::clamp(cell * 0.55, 6.0, 12.0);
    const auto step = cell >= readable_cell ? 1U : static_cast<unsigned>(std::ceil(24 / cell));
    for (std::size_t i = 0; i < map.names.size(); i += step) {
        const double middle = cell * (static_cast<double>(i) + 0.5);
        const auto name = std::to_string(map.names[i]);
        svg.text(map_left - 6, map_top + middle + letters / 3, name, letters, Svg::Anchor::end);
        svg.text(map_left + middle, map_top - 6, name, letters, Svg::Anchor::middle);
    }
}

/// Where one group of a level ends and the next begins, in rows.
std::vector<std::size_t> borders_of(const LatencyMap& map, const topology::LatencyLevel& level) {
    std::vector<std::size_t> borders{0};
    for (std::size_t i = 1; i < map.names.size(); ++i) {
        const auto group = std::ranges::find_if(
            level.groups, [&](const affinityd::CpuSet& members) { return members.contains(map.names[i]); });
        if (group != level.groups.end() && !group->contains(map.names[i - 1])) borders.push_back(i);
    }
    borders.push_back(map.names.size());
    return borders;
}

/// The finest level whose groups have room for their CPUs beside them; null: there is none.
const topology::LatencyLevel* level_to_name(const std::vector<topology::LatencyLevel>& levels, double cell) {
    for (const auto& level : levels) {
        const auto least = std::ranges::min(level.groups, {}, &affinityd::CpuSet::count).count();
        if (cell * static_cast<double>(least) >= least_label) return &level;
    }
    return nullptr;
}

/// Frames around groups, and where CPUs are too small for numbers, which ones they are.
void draw_groups(Svg& svg, const LatencyMap& map, const topology::LatencyLevel& level, double cell,
                 bool is_named) {
    const auto borders = borders_of(map, level);
    for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
        const double from = cell * static_cast<double>(borders[i]),
                     to = cell * static_cast<double>(borders[i + 1]);
        for (const double at : {from, to}) {
            svg.line(map_left + from, map_top + at, map_left + to, map_top + at, frame_color, 1);
            svg.line(map_left + at, map_top + from, map_left + at, map_top + to, frame_color, 1);
        }
        if (!is_named) continue;
        affinityd::CpuSet members;
        for (std::size_t row = borders[i]; row < borders[i + 1]; ++row)
            members.insert(map.names[row]);
        svg.text(map_left - 6, map_top + (from + to) / 2 + 4, cut(members.to_list(), label_letters, Page{}),
                 11, Svg::Anchor::end);
    }
}

void draw_scale(Svg& svg, const LatencyMap& map, double y) {
    const double step = 240.0 / scale_steps;
    const double range = std::log(std::max(map.most / map.least, 2.0));
    svg.text(map_left, y + 12, fmt::format("{:.0f} ns", map.least), 12);
    for (std::size_t i = 0; i < scale_steps; ++i) {
        const double part = (static_cast<double>(i) + 0.5) / scale_steps;
        const double ns = map.least * std::exp(part * range);
        svg.rect(map_left + 56 + step * static_cast<double>(i), y, step + 0.5, 14,
                 heat_color(quantized(shade_of_ns(map, ns))));
    }
    svg.text(map_left + 56 + 240 + 8, y + 12, fmt::format("{:.0f} ns", map.least * std::exp(range)), 12);
}

std::vector<std::string> latency_notes(const LatencyView& view) {
    std::vector<std::string> sentences;
    for (const auto& one : view.reading.distances)
        sentences.push_back(fmt::format("{}: {:.0f} ns ({:.0f} to {:.0f}; {})", one.name, one.median,
                                        one.least, one.most, counted(one.pairs, "pair")));
    sentences.insert(sentences.end(), view.reading.findings.begin(), view.reading.findings.end());
    sentences.insert(sentences.end(), view.remarks.begin(), view.remarks.end());
    sentences.push_back(view.reading.meaning);
    return sentences;
}

} // namespace

std::string latency_svg(const LatencyView& view) {
    const auto& levels = view.reading.levels;
    const auto map = latency_map(view.latencies, levels, topology::Latencies::most_cpus);
    const auto count = static_cast<double>(map.names.size());
    const double cell = std::clamp(map_side / count, least_cell, most_cell);
    const double bottom = map_top + cell * count;
    const auto notes = note_lines(latency_notes(view), map_side, 12);
    Svg svg(std::max(map_left + cell * count + map_right, map_left + map_side + map_right),
            bottom + 70 + note_leading * static_cast<double>(notes.size()), "Latency between CPUs");
    svg.text(map_left, 30, headline_of(view), 17);
    svg.text(map_left, 50, method_of(view), 12);
    draw_cells(svg, map, cell);
    if (cell >= figure_cell) draw_figures(svg, map, cell);
    const auto* named = cell >= readable_cell ? nullptr : level_to_name(levels, cell);
    if (named == nullptr) draw_numbers(svg, map, cell);
    for (const auto& level : levels)
        if (&level == &levels.back() || &level == named || cell >= readable_cell)
            draw_groups(svg, map, level, cell, &level == named);
    if (map.most > 0) draw_scale(svg, map, bottom + 14);
    draw_notes(svg, map_left, bottom + 44, notes, 12);
    return svg.finish();
}

} // namespace affinityctl

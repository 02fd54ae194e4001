// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/locality/picture.hpp"

#include "affinityctl/views/heat_shades.hpp"
#include "affinityctl/views/locality/heat_map.hpp"
#include "affinityctl/views/locality/labels.hpp"
#include "affinityctl/views/picture_notes.hpp"
#include "affinityctl/views/svg.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace affinityctl {

namespace locality = affinityd::locality;

namespace {

constexpr double map_margin = 80, top = 120, side = 640, least_page = 860;
constexpr std::size_t most_groups = 64, most_sources = 48;

std::string shares_text(const locality::WorkerFigures& all) {
    const bool is_any = all.reads > all.unknown;
    return fmt::format(
        "read where they arrived: same CPU {}, core {}, LLC group {}, node {}; by chance: CPU {}, core {}",
        percent_of(all.same.cpu, is_any), percent_of(all.same.core, is_any), percent_of(all.same.llc, is_any),
        percent_of(all.same.node, is_any), percent_of(all.chance.cpu, is_any),
        percent_of(all.chance.core, is_any));
}

void draw_map(Svg& svg, const HeatMap& map, double cell) {
    const auto letters = std::clamp(cell * 0.4, 6.0, 12.0);
    for (std::size_t row = 0; row < map.groups.size(); ++row) {
        const double y = top + cell * static_cast<double>(row);
        const auto name = std::to_string(map.groups[row]);
        svg.text(map_margin - 6, y + cell / 2 + letters / 3, name, letters, Svg::Anchor::end);
        svg.text(map_margin + cell * (static_cast<double>(row) + 0.5), top - 6, name, letters,
                 Svg::Anchor::middle);
        for (std::size_t column = 0; column < map.groups.size(); ++column) {
            const double share = map.cells[row][column];
            const double x = map_margin + cell * static_cast<double>(column);
            svg.rect(x + 0.5, y + 0.5, cell - 1, cell - 1, heat_color(share));
            if (share >= 0.005 && cell >= 24)
                svg.text(x + cell / 2, y + cell / 2 + letters / 3, fmt::format("{:.0f}", share * 100),
                         letters, Svg::Anchor::middle);
        }
    }
}

std::vector<std::string> locality_notes(const LocalityReport& report) {
    std::vector<std::string> sentences;
    std::size_t shown = 0;
    for (const auto& place : report.arrivals)
        if (shown++ < most_sources)
            sentences.push_back(fmt::format("CPU {}: {} reads, brought there by {}", place.cpu, place.reads,
                                            fmt::join(place.sources, "; ")));
    for (const auto& remark : remarks_of(report))
        sentences.push_back(remark);
    sentences.push_back(closing_of(report));
    return sentences;
}

} // namespace

std::string locality_svg(const LocalityReport& report, const locality::Nearness& near) {
    const auto map = fold(report.figures.matrix, near, most_groups);
    const auto count = static_cast<double>(std::max<std::size_t>(map.groups.size(), 1));
    const double cell = std::clamp(side / count, 8.0, 60.0);
    const double bottom = top + cell * static_cast<double>(map.groups.size());
    const auto notes = note_lines(locality_notes(report), least_page - map_margin - 40, 11);
    Svg svg(std::max(least_page, map_margin + cell * count + 40),
            bottom + 40 + note_leading * static_cast<double>(notes.size()),
            "Where packets arrive and where they are read");
    svg.text(map_margin, 28, headline_of(report), 17);
    svg.text(map_margin, 50, shares_text(report.figures.total), 12);
    svg.text(map_margin, 70,
             "Rows: where packets arrive; columns: where they are read; in % of the row, " + scale_of(map),
             12);
    draw_map(svg, map, cell);
    draw_notes(svg, map_margin, bottom + 12, notes, 11);
    return svg.finish();
}

} // namespace affinityctl

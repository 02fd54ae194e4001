// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/sharers/picture.hpp"

#include "affinityctl/views/heat_shades.hpp"
#include "affinityctl/views/page.hpp"
#include "affinityctl/views/picture_notes.hpp"
#include "affinityctl/views/sharers/labels.hpp"
#include "affinityctl/views/svg.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

constexpr double matrix_left = 230, matrix_top = 130, matrix_side = 640, least_sheet = 900;
constexpr std::size_t most_rows = 64, most_label = 30;

using Cells =
    std::map<std::pair<std::size_t, std::size_t>, std::uint64_t>; ///< (waker's row, wakee's) -> times

/// Threads of groups first, group by group, then others in the order of their strongest pair.
std::vector<Wakes::Thread> rows_of(const SharerGraph& graph) {
    std::vector<Wakes::Thread> rows;
    std::set<Wakes::Thread> known;
    const auto add = [&](const Wakes::Thread& thread) {
        if (rows.size() < most_rows && known.insert(thread).second) rows.push_back(thread);
    };
    for (const auto& group : graph.groups)
        std::ranges::for_each(group, add);
    for (const auto& edge : graph.edges) {
        add(edge.one);
        add(edge.other);
    }
    return rows;
}

Cells cells_of(const Wakes& wakes, const std::vector<Wakes::Thread>& rows) {
    std::map<Wakes::Thread, std::size_t> place;
    for (const auto& thread : rows)
        place.emplace(thread, place.size());
    Cells cells;
    for (const auto& [pair, times] : wakes.pairs) {
        const auto row = place.find(pair.first), column = place.find(pair.second);
        if (row != place.end() && column != place.end()) cells[{row->second, column->second}] = times;
    }
    return cells;
}

/// 12345.0 -> "12k"
std::string short_rate(double rate) {
    if (rate >= 999.5e3) return fmt::format("{:.1f}M", rate / 1e6);
    if (rate >= 9.995e3) return fmt::format("{:.0f}k", rate / 1e3);
    if (rate >= 999.5) return fmt::format("{:.1f}k", rate / 1e3);
    return rate >= 0.5 ? fmt::format("{:.0f}", rate) : "<1";
}

void draw_cells(Svg& svg, const Cells& cells, std::size_t rows, double cell, double seconds) {
    std::uint64_t most = 1;
    for (const auto& [place, times] : cells)
        most = std::max(most, times);
    const auto letters = std::clamp(cell * 0.3, 6.0, 12.0);
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t column = 0; column < rows; ++column) {
            const auto found = cells.find({row, column});
            const double x = matrix_left + cell * static_cast<double>(column);
            const double y = matrix_top + cell * static_cast<double>(row);
            const double times = found == cells.end() ? 0 : static_cast<double>(found->second);
            const double strength = std::log1p(times) / std::log1p(static_cast<double>(most));
            svg.rect(x + 0.5, y + 0.5, cell - 1, cell - 1, row == column ? "#e6e6e6" : heat_color(strength));
            if (times > 0 && cell >= 26 && seconds > 0)
                svg.text(x + cell / 2, y + cell / 2 + letters / 3, short_rate(times / seconds), letters,
                         Svg::Anchor::middle);
        }
}

void draw_labels(Svg& svg, const SharersReport& report, const std::vector<Wakes::Thread>& rows, double cell) {
    const auto letters = std::clamp(cell * 0.4, 6.0, 12.0);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const double along = cell * (static_cast<double>(row) + 0.5);
        const auto label = cut(printable(label_of(report, rows[row])), most_label, Page{.unicode = true});
        svg.text(matrix_left - 26, matrix_top + along + letters / 3, label, letters, Svg::Anchor::end);
        const auto number = std::to_string(row + 1);
        svg.text(matrix_left - 6, matrix_top + along + letters / 3, number, letters, Svg::Anchor::end);
        svg.text(matrix_left + along, matrix_top - 6, number, letters, Svg::Anchor::middle);
    }
}

/// A frame around each group that is in the picture as a whole.
void draw_groups(Svg& svg, const SharerGraph& graph, std::size_t rows, double cell) {
    std::size_t first = 0;
    for (const auto& group : graph.groups) {
        if (first + group.size() > rows) return;
        const double from = cell * static_cast<double>(first);
        const double to = from + cell * static_cast<double>(group.size());
        const auto line = [&](double x1, double y1, double x2, double y2) {
            svg.line(matrix_left + x1, matrix_top + y1, matrix_left + x2, matrix_top + y2, "#b3261e", 2);
        };
        line(from, from, to, from);
        line(from, to, to, to);
        line(from, from, from, to);
        line(to, from, to, to);
        first += group.size();
    }
}

std::vector<std::string> notes_below(const SharersReport& report, std::size_t rows) {
    std::vector<std::string> sentences;
    std::set<Wakes::Thread> known;
    for (const auto& edge : report.graph.edges)
        known.insert({edge.one, edge.other});
    if (known.size() > rows)
        sentences.push_back(
            fmt::format("{} more threads that share less are left out.", known.size() - rows));
    for (const auto& remark : remarks_of(report))
        sentences.push_back(printable(remark));
    return note_lines(sentences, least_sheet - 48, 11);
}

} // namespace

std::string sharers_svg(const SharersReport& report) {
    const auto rows = rows_of(report.graph);
    const auto cells = cells_of(report.wakes, rows);
    const double cell =
        std::clamp(matrix_side / static_cast<double>(std::max<std::size_t>(rows.size(), 1)), 10.0, 60.0);
    const double bottom = matrix_top + cell * static_cast<double>(rows.size());
    const auto notes = notes_below(report, rows.size());
    Svg svg(std::max(least_sheet, matrix_left + cell * static_cast<double>(rows.size()) + 40),
            bottom + 40 + note_leading * static_cast<double>(notes.size()), "Which threads wake each other");
    svg.text(24, 28, headline_of(report), 17);
    svg.text(24, 50,
             "Rows wake columns, per second; the darker the more often (logarithmic). Framed: threads that "
             "belong together.",
             12);
    svg.text(
        24, 68,
        "Only waits for futexes, pipes, sockets and the like count; wake-ups by interrupts are no thread's.",
        12);
    draw_cells(svg, cells, rows.size(), cell, report.wakes.seconds);
    draw_labels(svg, report, rows, cell);
    draw_groups(svg, report.graph, rows.size(), cell);
    draw_notes(svg, 24, bottom + 12, notes, 11);
    return svg.finish();
}

} // namespace affinityctl

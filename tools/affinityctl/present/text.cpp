// SPDX-License-Identifier: Apache-2.0
// A document on a terminal or in a pipe.
#include "base/text.hpp"

#include "affinityctl/present/document.hpp"
#include "base/escape.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using Look = Document::Look;
using Row = std::vector<std::string>;
using Rows = std::vector<Row>;

constexpr std::size_t gap = 2;             // between columns
constexpr std::size_t least_cut_width = 6; // of a column that is cut
constexpr std::size_t least_prose = 24;    // of a column that is wrapped

std::string colored(const std::string& text, Look look) {
    constexpr std::array codes{"", "1", "1;32", "1;31", "36", "32", "33"};
    return look == Look::plain
               ? text
               : fmt::format("\033[{}m{}\033[0m", codes[static_cast<std::size_t>(look)], text);
}

std::string render(const Document::Line& line, const Page& page) {
    std::string plain, tinted = line.first;
    for (const auto& span : line.spans) {
        const auto text = affinityd::escaped_lines(span.text);
        plain += text;
        tinted += colored(text, span.look);
    }
    const bool fits = page.width == 0 || columns_of(line.first + plain) <= page.width;
    if (line.as_is) return line.first + plain + "\n";
    return page.color && fits ? tinted + "\n" : wrapped(plain, line.first, page);
}

std::string render(const Document::Problem& problem, const Page& page) {
    auto text = problem.sentence.empty()
                    ? ""
                    : wrapped(affinityd::escaped_lines(problem.sentence), problem.first, page);
    if (!problem.command.empty())
        text += wrapped(affinityd::escaped(problem.command), page.unicode ? "    \u2192 " : "    -> ", page);
    return text;
}

std::string render(const Document::Verbatim& verbatim, const Page& page) {
    auto text = affinityd::escaped_lines(verbatim.text);
    if (!text.ends_with('\n')) text += '\n';
    if (!verbatim.may_be_cut || page.width == 0) return text;
    std::string lines;
    for (const auto line : affinityd::split(std::string_view(text).substr(0, text.size() - 1), '\n'))
        lines += cut(line, page.width, page) + "\n";
    return lines;
}

/// The columns of a table that are shown, and their cells.
struct TextCells {
    Row heading;
    Rows rows;
    bool has_prose = false; ///< the last column is wrapped

    explicit TextCells(const Document::Table& table) : rows(cells_of(table)) {
        for (auto& row : rows)
            for (auto& text : row)
                text = affinityd::escaped(text);
        heading = std::move(rows.front());
        rows.erase(rows.begin());
        const auto last = std::ranges::find(table.fields, heading.back(), &Field::heading);
        has_prose = last != table.fields.end() && std::string_view(last->type).starts_with("prose");
    }
    void keep(const std::vector<std::size_t>& columns) {
        const auto chosen = [&](const Row& row) {
            Row kept;
            for (const auto column : columns)
                kept.push_back(row[column]);
            return kept;
        };
        has_prose = has_prose && !columns.empty() && columns.back() + 1 == heading.size();
        heading = chosen(heading);
        for (auto& row : rows)
            row = chosen(row);
    }
    [[nodiscard]] std::vector<std::size_t> widths() const {
        std::vector<std::size_t> widths;
        for (std::size_t column = 0; column < heading.size(); ++column) {
            widths.push_back(columns_of(heading[column]));
            for (const auto& row : rows)
                widths.back() = std::max(widths.back(), columns_of(row[column]));
        }
        return widths;
    }
    void drop_empty(std::size_t keys) {
        std::vector<std::size_t> columns;
        for (std::size_t column = 0; column < heading.size(); ++column)
            if (column < keys || std::ranges::any_of(rows, [&](const Row& row) {
                    return !row[column].empty() && row[column] != "-";
                }))
                columns.push_back(column);
        keep(columns);
    }
};

std::size_t total(const std::vector<std::size_t>& widths) {
    return std::accumulate(widths.begin(), widths.end(), gap * (widths.size() - 1));
}

/// The widest columns are cut; the first, by which rows are told apart, only where all others are as narrow
/// as can be.
void shrink(std::vector<std::size_t>& widths, bool has_prose, const Page& page) {
    const auto narrow = [&](auto first, auto last, std::size_t least) {
        for (auto widest = std::max_element(first, last);
             widest != last && total(widths) > page.width && *widest > least;
             widest = std::max_element(first, last))
            --*widest;
    };
    if (has_prose) narrow(widths.end() - 1, widths.end(), least_prose);
    narrow(widths.begin() + 1, widths.end() - (has_prose ? 1 : 0), least_cut_width);
    narrow(widths.begin() + 1, widths.end(), least_cut_width);
    narrow(widths.begin(), widths.end(), least_cut_width);
}

std::string lines_of(const Row& row, const std::vector<std::size_t>& widths, bool has_prose,
                     const Page& page) {
    std::string text;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
        const auto cell = cut(row[i], widths[i], page);
        text += cell + std::string(widths[i] - columns_of(cell) + gap, ' ');
    }
    if (has_prose && page.width > 0 && columns_of(text) + columns_of(row.back()) > page.width)
        return wrapped(row.back(), text, page);
    text += cut(row.back(), widths.back(), page);
    text.erase(text.find_last_not_of(' ') + 1);
    return (page.width == 0 ? text : cut(text, page.width, page)) + "\n";
}

std::string text_of_cells(const TextCells& cells, const Page& page) {
    auto widths = cells.widths();
    if (page.width > 0) shrink(widths, cells.has_prose, page);
    auto heading = lines_of(cells.heading, widths, false, page);
    heading.pop_back();
    auto text = (page.color ? colored(heading, Look::bold) : heading) + "\n";
    for (const auto& row : cells.rows)
        text += lines_of(row, widths, cells.has_prose, page);
    return text;
}

std::string folded(const TextCells& cells, std::size_t keys, const Page& page) {
    const auto widths = cells.widths();
    std::string text;
    for (std::size_t next = keys; next < widths.size();) {
        std::vector<std::size_t> columns(keys);
        std::iota(columns.begin(), columns.end(), 0);
        auto used =
            std::accumulate(widths.begin(), widths.begin() + static_cast<std::ptrdiff_t>(keys), gap * keys);
        do {
            used += widths[next] + gap;
            columns.push_back(next++);
        } while (next < widths.size() && used + widths[next] <= page.width);
        auto part = cells;
        part.keep(columns);
        text += (text.empty() ? "" : "\n") + text_of_cells(part, page);
    }
    return text;
}

std::string render(const Document::Table& table, const Page& page) {
    TextCells cells(table);
    if (page.width == 0 || total(cells.widths()) <= page.width) return text_of_cells(cells, page);
    cells.drop_empty(table.keys);
    return table.folded ? folded(cells, table.keys, page) : text_of_cells(cells, page);
}

// Heat maps: cells with figures are `wide` columns wide, those without `narrow`.
constexpr std::size_t usual_width = 80, label = 8, wide = 5, narrow = 2;

std::string shaded(const std::string& text, std::size_t shade, const Page& page) {
    constexpr std::array looks{"", "\033[48;5;195;38;5;16m", "\033[48;5;117;38;5;16m",
                               "\033[48;5;32;38;5;231m", "\033[48;5;25;38;5;231m"};
    return !page.color || shade == 0 ? text : looks[shade] + text + "\033[0m";
}

std::string cell_of_map(std::optional<double> share, const std::string& text, std::size_t width,
                        const Page& page) {
    constexpr std::array plain{". ", "::", "++", "**", "##"};
    constexpr std::array blocks{"\u00b7 ", "\u2591\u2591", "\u2592\u2592", "\u2593\u2593", "\u2588\u2588"};
    if (!share) return std::string(width, ' ');
    // 0: nothing, 1 to 4: up to a quarter, a half, three quarters, all.
    const auto shade =
        *share <= 0 ? std::size_t{0} : static_cast<std::size_t>(std::clamp(std::ceil(*share * 4), 1.0, 4.0));
    if (width == wide) return shaded(fmt::format("{:>{}}", text, wide), shade, page);
    if (page.color) return shaded(shade == 0 ? ". " : "  ", shade, page);
    return (page.unicode ? blocks : plain)[shade];
}

/// Lines with the names of the columns, one character below the other where these are narrow.
std::string map_heading(const std::vector<std::string>& columns, std::size_t width,
                        const std::string& corner) {
    std::string lines;
    if (width == wide) {
        lines = fmt::format("{:>{}}", corner, label);
        for (const auto& name : columns)
            lines += fmt::format("{:>{}}", name, wide);
        return lines + "\n";
    }
    const auto digits = std::ranges::max(columns, {}, &std::string::size).size();
    for (std::size_t digit = 0; digit < digits; ++digit) {
        auto line = fmt::format("{:>{}} ", digit == 0 ? corner : "", label);
        for (const auto& name : columns)
            line += fmt::format("{:>{}}", name, digits)[digit] + std::string(" ");
        line.erase(line.find_last_not_of(' ') + 1);
        lines += line + "\n";
    }
    return lines;
}

std::string render(const Document::Map& map, Page page) {
    if (page.width == 0) page.width = usual_width;
    const auto room = page.width > label + wide ? page.width - label - wide : 1;
    const Document::Grid* grid = nullptr;
    for (const auto& each : map.grids)
        if (grid == nullptr || grid->columns.size() * narrow > room) grid = &each;
    if (grid == nullptr || grid->columns.empty()) return {};
    const auto width = grid->columns.size() * wide <= room ? wide : narrow;
    auto text =
        (page.color ? colored(map.title, Look::bold) : map.title) + "\n" + wrapped(grid->note, "  ", page);
    text += map_heading(grid->columns, width, map.corner);
    for (std::size_t row = 0; row < grid->rows.size(); ++row) {
        text += fmt::format("{:>{}}", grid->rows[row], label) + (width == narrow ? " " : "");
        for (std::size_t column = 0; column < grid->columns.size(); ++column)
            text += cell_of_map(grid->shares[row][column], text_of_cell(*grid, row, column), width, page);
        text.erase(text.find_last_not_of(' ') + 1);
        text += "\n";
    }
    return text;
}

constexpr std::size_t most_points = 60, bar_width = 40;

/// A character for each point, from the lowest to the highest in eight steps, 'x' where there is none.
std::string sparkline(std::span<const Document::Point> points, const Page& page) {
    constexpr std::array steps{"\u2581", "\u2582", "\u2583", "\u2584",
                               "\u2585", "\u2586", "\u2587", "\u2588"};
    if (points.size() > most_points) points = points.last(most_points);
    std::optional<double> low, high;
    for (const auto& point : points)
        if (!point.failed)
            low = std::min(low.value_or(point.y), point.y), high = std::max(high.value_or(point.y), point.y);
    std::string text;
    for (const auto& point : points) {
        const double part = point.failed || *high <= *low ? 0.5 : (point.y - *low) / (*high - *low);
        const auto step = std::min(steps.size() - 1, static_cast<std::size_t>(part * steps.size()));
        text += point.failed   ? "x"
                : page.unicode ? steps[step]
                               : std::string(1, static_cast<char>('1' + step));
    }
    return text;
}

std::string render(const Document::Chart& chart, const Page& page) {
    std::string text;
    if (chart.kind == Document::Chart::Kind::bars && !chart.title.empty()) text = chart.title + "\n";
    for (const auto& series : chart.series) {
        const auto name = affinityd::escaped(series.name);
        if (chart.kind != Document::Chart::Kind::bars) {
            text += wrapped(fmt::format("{}: {}", name, sparkline(series.points, page)), "", page);
            continue;
        }
        double most = 0;
        std::size_t widest = 0;
        for (const auto& each : chart.series) // one scale for all
            for (const auto& point : each.points) {
                most = std::max(most, point.high.value_or(point.y));
                widest = std::max(widest, columns_of(point.label));
            }
        if (!name.empty()) text += name + "\n";
        for (const auto& point : series.points) {
            if (point.failed) continue;
            const auto length = [&](double y) {
                return most > 0 ? static_cast<std::size_t>(std::lround(y / most * bar_width)) : 0;
            };
            const auto low = length(point.low.value_or(point.y)), high = length(point.high.value_or(point.y));
            text += fmt::format("  {:<{}}  {:<{}} {:.4g} {}\n", point.label, widest,
                                std::string(low, '#') + std::string(high - low, '+'), bar_width, point.y,
                                chart.unit);
        }
    }
    return text;
}

std::string render(const Document::Ways& ways, const Page& page) {
    auto text = wrapped(affinityd::escaped(ways.title + ": " + ways.note), "", page);
    for (const auto& way : ways.ways) {
        std::string line;
        for (const auto& stop : way)
            line += (line.empty() ? "" : " -> ") + stop.kind + " " + stop.name +
                    (stop.arrow.empty() ? "" : " (" + stop.arrow + ")");
        text += wrapped(affinityd::escaped(line), "  ", page);
    }
    return text;
}

std::string render(const Document::Drawing&, const Page&) { return {}; }

} // namespace

std::vector<Row> cells_of(const Document::Table& table) {
    std::vector<Row> rows(table.rows.size() + 1);
    rows[0] = table.headings;
    for (std::size_t row = 0; row < table.rows.size() && !table.headings.empty(); ++row)
        for (const auto& text : table.rows[row])
            rows[row + 1].push_back(cell(text));
    const auto add = [&](const Field& field) {
        rows[0].emplace_back(field.heading);
        for (std::size_t row = 0; row < table.rows.size(); ++row)
            rows[row + 1].push_back(field.show != nullptr ? field.show(table.rows[row])
                                                          : text_of(table.rows[row], field.key));
    };
    for (const auto& field : table.fields)
        if (table.columns.empty() && *field.heading != '\0') add(field);
    for (const auto column : table.columns)
        add(*std::ranges::find(table.fields, column, &Field::heading));
    return rows;
}

std::string text_of_cell(const Document::Grid& grid, std::size_t row, std::size_t column) {
    if (!grid.texts.empty()) return grid.texts[row][column];
    const auto share = grid.shares[row][column];
    if (!share) return {};
    return *share <= 0 ? "." : *share < 0.005 ? "<1" : fmt::format("{:.0f}", *share * 100);
}

std::string to_text(const Document& document, const Page& page) {
    std::string text;
    for (const auto& block : document.blocks) {
        if (block.where == Document::Where::picture) continue;
        const auto part = std::visit([&](const auto& one) { return render(one, page); }, block.is);
        text += (block.gap && !part.empty() ? "\n" : "") + part;
    }
    return text;
}

} // namespace affinityctl

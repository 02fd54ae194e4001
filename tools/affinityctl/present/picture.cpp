// SPDX-License-Identifier: Apache-2.0
// A document as one SVG sheet: its blocks below each other, all pictures of affinityctl in the same style.
#include "affinityctl/present/document.hpp"
#include "affinityctl/present/svg.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

namespace {

constexpr double margin = 28, page_width = 860, letters = 12, leading = 17;
constexpr const char *ink = "#1c222b", *faint = "#5a6573", *grid_line = "#dfe4ea";
/// Most colour-blind people can tell these apart.
constexpr std::array palette{"#2867c6", "#d9601a", "#1d8a5b", "#a83f97",
                             "#b38600", "#12839c", "#c5323f", "#6549c9"};

std::string rect(double x, double y, double width, double height, std::string_view fill, double opacity = 1) {
    return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
                       "fill-opacity=\"{}\"/>\n",
                       x, y, width, height, fill, opacity);
}

std::string stroke(double x1, double y1, double x2, double y2, std::string_view color, double width = 1) {
    return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
                       "stroke-width=\"{:.1f}\"/>\n",
                       x1, y1, x2, y2, color, width);
}

constexpr const char *to_end = "text-anchor=\"end\"", *centred = "text-anchor=\"middle\"";

/// From white to a blue on which black can be read.
std::string heat_color(double share) {
    const auto between = [&](double from, double to) {
        return static_cast<int>(std::lround(from + (to - from) * std::clamp(share, 0.0, 1.0)));
    };
    return fmt::format("#{:02x}{:02x}{:02x}", between(247, 90), between(251, 165), between(255, 215));
}

/// A number at an axis, in at most four figures.
std::string figure(double value) { return fmt::format("{:.4g}", value); }

/// The least of 1, 2, 2.5 and 5 times a power of ten that is not below `least`.
double round_step(double least) {
    const double power = std::pow(10, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 2.5, 5.0})
        if (factor * power >= least) return factor * power;
    return 10 * power;
}

class Sheet {
  public:
    explicit Sheet(const Document& document) : document_(document) {
        text(margin, 34, 19, ink, document.title, "font-weight=\"700\"");
        y_ = 52;
        if (!document.source.empty()) text(margin, y_, 11, faint, document.source);
        for (const auto& block : document.blocks) {
            if (block.where == Document::Where::text) continue;
            if (block.gap) y_ += leading / 2;
            std::visit([this](const auto& one) { draw(one); }, block.is);
        }
    }

    [[nodiscard]] std::string finish() const {
        return fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
            "{0:.0f} "
            "{1:.0f}\" font-family=\"Inter, 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, sans-serif\">\n"
            "<title>{2}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{3}</svg>\n",
            width_ + margin, y_ + margin, xml_text(document_.title), out_);
    }

  private:
    void text(double x, double y, double size, const char* color, std::string_view text,
              std::string_view more = {}) {
        out_ += svg_text(x, y, size, color, text, more);
    }
    void widen(double right) { width_ = std::max(width_, right); }

    void draw(const Document::Line& line) {
        std::string whole = line.first;
        for (const auto& span : line.spans)
            whole += span.text;
        if (line.as_is) return draw_mono(whole, false);
        const bool is_bold = !line.spans.empty() && line.spans.front().look == Document::Look::bold;
        for (const auto& part : note_lines(std::array{whole}, page_width - 2 * margin, letters))
            text(margin, y_ += leading, letters, ink, part, is_bold ? "font-weight=\"600\"" : "");
    }
    void draw(const Document::Problem& problem) {
        draw(Document::Line{{{problem.sentence}}});
        if (!problem.command.empty()) draw(Document::Line{{{problem.command}}, "    "});
    }
    void draw(const Document::Verbatim& verbatim) { draw(Document::Line{{{verbatim.text}}}); }
    void draw(const Document::Table& table) {
        Document part;
        part.add(table);
        const auto lines = to_text(part, {.width = 118, .unicode = true});
        draw_mono(std::string_view(lines).substr(0, lines.size() - 1), true);
        y_ += 6;
    }
    void draw_mono(std::string_view lines, bool has_heading) {
        for (const auto row : affinityd::split(lines, '\n')) {
            text(margin, y_ += leading - 2, 11, std::exchange(has_heading, false) ? faint : ink, row,
                 "font-family=\"'DejaVu Sans Mono', Menlo, monospace\" xml:space=\"preserve\"");
            widen(margin + 6.7 * static_cast<double>(columns_of(row)));
        }
    }

    void draw(const Document::Map& map) {
        constexpr std::size_t most = 256;
        const Document::Grid* grid = nullptr;
        for (const auto& each : map.grids)
            if (grid == nullptr || grid->columns.size() > most) grid = &each;
        if (grid == nullptr || grid->columns.empty()) return;
        draw(Document::Line{{{map.title, Document::Look::bold}}});
        draw(Document::Line{{{grid->note}}});
        double left = 80;
        for (const auto& name : grid->rows)
            left = std::max(left, margin + 6 + 6.6 * static_cast<double>(columns_of(name)));
        const double side = std::clamp(640 / static_cast<double>(grid->columns.size()), 2.5, 60.0);
        const auto step = static_cast<std::size_t>(std::ceil(8 / side)); // of the rows that are named
        const double size = std::clamp(side * 0.4, 6.0, letters);
        const double top = y_ + 26;
        for (std::size_t column = 0; column < grid->columns.size(); column += step)
            text(left + side * (static_cast<double>(column) + 0.5), top - 6, size, faint,
                 grid->columns[column], centred);
        for (std::size_t row = 0; row < grid->rows.size(); ++row) {
            const double y = top + side * static_cast<double>(row);
            if (row % step == 0)
                text(left - 6, y + side / 2 + size / 3, size, faint, grid->rows[row], to_end);
            for (std::size_t column = 0; column < grid->columns.size(); ++column) {
                const auto share = grid->shares[row][column];
                const double x = left + side * static_cast<double>(column);
                if (!share) continue;
                const double seam = side >= 8 ? 1 : 0;
                out_ += rect(x + seam / 2, y + seam / 2, side - seam, side - seam, heat_color(*share));
                if (const auto words = text_of_cell(*grid, row, column); side >= 24 && words != ".")
                    text(x + side / 2, y + side / 2 + size / 3, size, ink, words, centred);
            }
        }
        widen(left + side * static_cast<double>(grid->columns.size()));
        y_ = top + side * static_cast<double>(grid->rows.size()) + 6;
    }

    void draw(const Document::Chart& chart) {
        draw(Document::Line{{{chart.title, Document::Look::bold}}});
        y_ += 26;
        const bool is_bars = chart.kind == Document::Chart::Kind::bars;
        double most = chart.expected ? chart.expected->high.value_or(0) : 0, highest = most;
        for (const auto& series : chart.series)
            for (const auto& point : series.points) {
                if (point.failed) continue;
                most = std::max(most, point.y);
                highest = std::max(highest, point.high.value_or(point.y));
            }
        // An interval that is very wide leaves the frame before it flattens all curves.
        most = is_bars ? highest : std::min(highest, 3 * most);
        if (most <= 0) most = 1;
        is_bars ? draw_bars(chart, most) : draw_points(chart, 4 * round_step(most / 4));
    }

    void draw_bars(const Document::Chart& chart, double most) {
        y_ -= 14;
        double left = margin;
        for (const auto& series : chart.series)
            for (const auto& point : series.points)
                left = std::max(left, margin + 12 + 6.6 * static_cast<double>(columns_of(point.label)));
        const double room = page_width - margin - 130 - left;
        for (std::size_t number = 0; number < chart.series.size(); ++number) {
            const auto& series = chart.series[number];
            if (!series.name.empty()) text(margin, y_ += 10, 11, faint, series.name);
            for (const auto& point : series.points) {
                const double y = y_ += 20;
                text(left - 8, y, letters, ink, point.label, to_end);
                out_ += rect(left, y - 11, point.y / most * room, 14, palette[number % palette.size()], 0.85);
                if (point.low && point.high)
                    out_ += stroke(left + *point.low / most * room, y - 4, left + *point.high / most * room,
                                   y - 4, ink, 1.5);
                text(left + point.high.value_or(point.y) / most * room + 8, y, 11, faint,
                     point.failed ? "-" : figure(point.y) + " " + chart.unit);
            }
        }
        y_ += 4;
    }

    void draw_points(const Document::Chart& chart, double most) {
        constexpr double left = 78, wide = 720, high = 240;
        const double top = y_, bottom = top + high;
        const auto place = [&](double value) { return bottom - std::clamp(value, 0.0, most) / most * high; };
        double first = 0, last = 0;
        bool any = false;
        for (const auto& series : chart.series)
            for (const auto& point : series.points) {
                first = any ? std::min(first, point.x) : point.x;
                last = any ? std::max(last, point.x) : point.x;
                any = true;
            }
        for (int step = 0; step <= 4; ++step) {
            const double value = most / 4 * step;
            out_ += stroke(left, place(value), left + wide, place(value), step == 0 ? ink : grid_line);
            text(left - 6, place(value) + 4, 11, faint, figure(value), to_end);
        }
        text(left, top - 8, 11, faint, chart.unit);
        if (const auto& band = chart.expected) {
            out_ += rect(left, place(band->high.value_or(band->y)), wide,
                         place(band->low.value_or(band->y)) - place(band->high.value_or(band->y)), palette[0],
                         0.15);
            out_ += stroke(left, place(band->y), left + wide, place(band->y), palette[0]);
            text(left + wide + 6, place(band->y) + 4, 11, faint, band->label);
        }
        for (std::size_t number = 0; number < chart.series.size(); ++number) {
            const auto& series = chart.series[number];
            const char* color = palette[number % palette.size()];
            const Document::Point* before = nullptr;
            const auto across = [&](double x) {
                return left + (last > first ? (x - first) / (last - first) : 0) * wide;
            };
            for (const auto& point : series.points) {
                const double x = across(point.x);
                if (point.failed) {
                    text(x, bottom - 3, letters, ink, "x", centred);
                    continue;
                }
                if (point.low && point.high)
                    out_ += stroke(x, place(*point.low), x, place(*point.high), color, 1.5);
                if (chart.kind == Document::Chart::Kind::lines && before != nullptr)
                    out_ += stroke(across(before->x), place(before->y), x, place(point.y), color, 1.5);
                out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x,
                                    place(point.y), color);
                before = &point;
            }
            widen(left + wide + 12 + 6.2 * static_cast<double>(columns_of(series.name)));
            if (chart.series.size() > 1)
                text(left + wide + 6, top + 16 * static_cast<double>(number), 11, color, series.name);
        }
        if (any && chart.x_text != nullptr) {
            text(left, bottom + 20, 11, faint, chart.x_text(first));
            text(left + wide, bottom + 20, 11, faint, chart.x_text(last), to_end);
        }
        widen(left + wide + 80);
        y_ = bottom + 26;
    }

    void draw(const Document::Drawing& drawing) {
        out_ +=
            fmt::format("<g transform=\"translate({:.0f} {:.0f})\">\n{}</g>\n", margin, y_ + 14, drawing.svg);
        widen(margin + drawing.width);
        y_ += 14 + drawing.height;
    }

    const Document& document_;
    std::string out_;
    double y_ = 0, width_ = page_width - margin;
};

} // namespace

std::string to_svg(const Document& document) { return Sheet(document).finish(); }

} // namespace affinityctl

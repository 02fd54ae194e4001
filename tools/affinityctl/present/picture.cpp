// SPDX-License-Identifier: Apache-2.0
// A document as one SVG sheet: its blocks below each other, all pictures of affinityctl in the same style.
#include "affinityctl/present/document.hpp"
#include "affinityctl/present/svg.hpp"
#include "base/escape.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace affinityctl {

namespace {

// So narrow that letters can be read where it is shrunk to the width of a telephone.
constexpr double margin = 20, page_width = 600, letters = 13, small = 11, leading = 18;
constexpr double letter_width = 0.55; // of their size: those of usual sans-serif fonts on average
constexpr const char* grid_line = "#dfe4ea";
constexpr std::string_view to_end = "text-anchor=\"end\"", centred = "text-anchor=\"middle\"",
                           bold = "font-weight=\"600\"";

double width_of(std::string_view text, double size) {
    return letter_width * size * static_cast<double>(columns_of(text));
}

std::string stroke(double x1, double y1, double x2, double y2, std::string_view color, double width = 1) {
    return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
                       "stroke-width=\"{:.1f}\"/>\n",
                       x1, y1, x2, y2, color, width);
}

std::string dot(double x, double y, std::string_view color) {
    return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x, y, color);
}

/// From white to a blue on which black can be read.
std::string heat_color(double share) {
    const auto between = [&](double from, double to) {
        return static_cast<int>(std::lround(from + (to - from) * std::clamp(share, 0.0, 1.0)));
    };
    return fmt::format("#{:02x}{:02x}{:02x}", between(247, 90), between(251, 165), between(255, 215));
}

/// A number at an axis, in at most four figures.
std::string axis_figure(double value) { return fmt::format("{:.4g}", value); }

/// The least of 1, 2, 2.5 and 5 times a power of ten that is not below `least`.
double round_step(double least) {
    const double power = std::pow(10, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 2.5, 5.0})
        if (factor * power >= least) return factor * power;
    return 10 * power;
}

/// A sheet is white, and dark on a dark screen, within a page, too.
constexpr std::string_view scheme =
    "<style>@media screen and (prefers-color-scheme:dark){svg{color-scheme:dark;filter:invert(.92) "
    "hue-rotate(180deg)}}</style>";

class Sheet {
  public:
    explicit Sheet(const Document& document) : document_(document) {
        y_ = 10;
        if (!document.title.empty()) lines(document.title, 18, svg_ink, "font-weight=\"700\"");
        if (!document.source.empty()) lines(document.source, small, svg_faint);
        for (const auto& block : document.blocks) {
            if (block.where == Document::Where::text) continue;
            if (block.gap) y_ += leading / 2;
            std::visit([this](const auto& one) { draw(one); }, block.is);
        }
    }

    [[nodiscard]] std::string finish() const {
        return fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
            "{0:.0f} {1:.0f}\" font-family=\"Inter, 'Noto Sans', 'DejaVu Sans', Helvetica, Arial, "
            "sans-serif\">\n{3}\n<title>{2}</title>\n<rect width=\"100%\" height=\"100%\" "
            "fill=\"#ffffff\"/>\n"
            "{4}</svg>\n",
            width_ + margin, y_ + margin, xml_text(document_.title), scheme, out_);
    }

  private:
    void text(double x, double y, double size, std::string_view color, std::string_view text,
              std::string_view more = {}) {
        out_ += svg_text(x, y, size, color, text, more);
    }
    void widen(double right) { width_ = std::max(width_, right); }

    /// Lines of the page's width.
    void lines(std::string_view words, double size, std::string_view color, std::string_view more = {}) {
        const double letter = width_of("x", size) * (more.empty() ? 1 : 1.2); // bold is wider
        const Page page{.width = static_cast<std::size_t>((page_width - 2 * margin) / letter)};
        const auto wrapped_words = wrapped(words, "", page);
        for (const auto line :
             affinityd::split(std::string_view(wrapped_words).substr(0, wrapped_words.size() - 1), '\n'))
            text(margin, y_ += size + 5, size, color, line, more);
    }
    void as_they_are(std::string_view lines) {
        if (lines.ends_with('\n')) lines.remove_suffix(1);
        for (const auto line : affinityd::split(lines, '\n')) {
            text(margin, y_ += leading - 3, small, svg_ink, line,
                 "font-family=\"'DejaVu Sans Mono', Menlo, monospace\" xml:space=\"preserve\"");
            widen(margin + 6.7 * static_cast<double>(columns_of(line)));
        }
    }

    void draw(const Document::Line& line) {
        std::string whole = line.first;
        for (const auto& span : line.spans)
            whole += span.text;
        const bool is_bold = !line.spans.empty() && line.spans.front().look == Document::Look::bold;
        line.as_is ? as_they_are(whole) : lines(whole, letters, svg_ink, is_bold ? bold : "");
    }
    void draw(const Document::Problem& problem) {
        lines(problem.sentence, letters, svg_ink);
        if (!problem.command.empty()) as_they_are("    " + problem.command);
    }
    void draw(const Document::Verbatim& verbatim) { as_they_are(verbatim.text); }
    void draw(const Document::Table& table) {
        Document part;
        part.add(table);
        as_they_are(to_text(part, {.width = 82, .unicode = true}));
        y_ += 6;
    }

    void draw(const Document::Map& map) {
        constexpr std::size_t most = 256;
        const Document::Grid* grid = nullptr;
        for (const auto& each : map.grids)
            if (grid == nullptr || grid->columns.size() > most) grid = &each;
        if (grid == nullptr || grid->columns.empty()) return;
        lines(map.title, letters, svg_ink, bold);
        lines(grid->note, small, svg_faint);
        double left = 50;
        for (const auto& name : grid->rows)
            left = std::max(left, margin + 8 + width_of(name, small));
        const double side =
            std::clamp((page_width - margin - left) / static_cast<double>(grid->columns.size()), 2.5, 50.0);
        const double size = std::clamp(side * 0.4, 8.0, letters);
        const auto step = static_cast<std::size_t>(std::ceil(11 / side)); // of the rows that are named
        const double widest = width_of(std::ranges::max(grid->columns, {}, &std::string::size), size) + 5;
        const auto column_step = static_cast<std::size_t>(std::ceil(widest / side));
        const double top = y_ + 24;
        for (std::size_t column = 0; column < grid->columns.size(); column += column_step)
            text(left + side * (static_cast<double>(column) + 0.5), top - 6, size, svg_faint,
                 grid->columns[column], centred);
        for (std::size_t row = 0; row < grid->rows.size(); ++row) {
            const double y = top + side * static_cast<double>(row);
            if (row % step == 0)
                text(left - 6, y + side / 2 + size / 3, std::min(size, small), svg_faint, grid->rows[row],
                     to_end);
            for (std::size_t column = 0; column < grid->columns.size(); ++column) {
                const auto share = grid->shares[row][column];
                if (!share) continue;
                const double x = left + side * static_cast<double>(column), seam = side >= 8 ? 1 : 0;
                out_ += svg_rect(x, y, side - seam, side - seam, heat_color(*share));
                if (const auto words = text_of_cell(*grid, row, column); side >= 24 && words != ".")
                    text(x + side / 2, y + side / 2 + size / 3, size, svg_ink, words, centred);
            }
        }
        widen(left + side * static_cast<double>(grid->columns.size()));
        y_ = top + side * static_cast<double>(grid->rows.size()) + 6;
    }

    void draw(const Document::Chart& chart) {
        lines(chart.title, letters, svg_ink, bold);
        const bool is_bars = chart.kind == Document::Chart::Kind::bars;
        double most = chart.expected ? chart.expected->high.value_or(0) : 0, highest = most;
        for (const auto& series : chart.series)
            for (const auto& point : series.points) {
                if (point.failed) continue;
                most = std::max(most, point.y);
                highest = std::max(highest, point.high.value_or(point.y));
            }
        // An interval that is very wide is cut at the frame before it flattens all curves.
        most = is_bars ? highest : std::min(highest, 3 * most);
        if (most <= 0) most = 1;
        is_bars ? draw_bars(chart, most) : draw_points(chart, 4 * round_step(most / 4));
    }

    void draw_bars(const Document::Chart& chart, double most) {
        double left = margin;
        for (const auto& series : chart.series)
            for (const auto& point : series.points)
                left = std::max(left, margin + 10 + width_of(point.label, small));
        const double scale = (page_width - margin - 110 - left) / most;
        for (std::size_t number = 0; number < chart.series.size(); ++number) {
            const auto& series = chart.series[number];
            if (!series.name.empty()) lines(series.name, small, svg_faint);
            for (const auto& point : series.points) {
                const double y = y_ += 20;
                text(left - 8, y, small, svg_ink, point.label, to_end);
                out_ += svg_rect(left, y - 11, point.y * scale, 14, svg_palette[number % svg_palette.size()],
                                 "fill-opacity=\"0.85\"");
                if (point.low && point.high)
                    out_ += stroke(left + *point.low * scale, y - 4, left + *point.high * scale, y - 4,
                                   svg_ink, 1.5);
                text(left + point.high.value_or(point.y) * scale + 8, y, small, svg_faint,
                     point.failed ? "-" : axis_figure(point.y) + " " + chart.unit);
            }
        }
        y_ += 4;
    }

    /// The names of the lines, in their colours, above them.
    void draw_names(const Document::Chart& chart) {
        double x = margin;
        y_ += leading;
        for (std::size_t number = 0; chart.series.size() > 1 && number < chart.series.size(); ++number) {
            const auto& name = chart.series[number].name;
            const double width = 26 + width_of(name, small);
            if (x > margin && x + width > page_width - margin) x = margin, y_ += leading;
            out_ += dot(x + 3, y_ - 4, svg_palette[number % svg_palette.size()]);
            text(x + 11, y_, small, svg_ink, name);
            x += width;
        }
    }

    void draw_points(const Document::Chart& chart, double most) {
        constexpr double left = 66, wide = page_width - margin - left, high = 240;
        draw_names(chart);
        const double top = y_ + 26, bottom = top + high;
        const auto place = [&](double value) { return bottom - std::clamp(value, 0.0, most) / most * high; };
        std::vector<double> xs;
        for (const auto& series : chart.series)
            for (const auto& point : series.points)
                xs.push_back(point.x);
        if (xs.empty()) xs.push_back(0);
        const auto [first, last] = std::ranges::minmax(xs);
        for (int step = 0; step <= 4; ++step) {
            const double value = most / 4 * step;
            out_ += stroke(left, place(value), left + wide, place(value), step == 0 ? svg_ink : grid_line);
            text(left - 6, place(value) + 4, small, svg_faint, axis_figure(value), to_end);
        }
        text(margin, top - 10, small, svg_faint, chart.unit);
        if (const auto& band = chart.expected) {
            const double upper = place(band->high.value_or(band->y));
            out_ += svg_rect(left, upper, wide, place(band->low.value_or(band->y)) - upper, svg_palette[0],
                             "fill-opacity=\"0.15\"");
            out_ += stroke(left, place(band->y), left + wide, place(band->y), svg_palette[0]);
            text(left + 4, place(band->y) - 4, small, svg_faint, band->label);
        }
        const auto across = [&, first = first, last = last](double x) {
            return left + (last > first ? (x - first) / (last - first) : 0.5) * wide;
        };
        for (std::size_t number = 0; number < chart.series.size(); ++number) {
            const char* color = svg_palette[number % svg_palette.size()];
            const Document::Point* before = nullptr;
            for (const auto& point : chart.series[number].points) {
                const double x = across(point.x);
                if (point.failed) {
                    text(x, bottom - 3, letters, svg_ink, "x", centred);
                    continue;
                }
                if (point.low && point.high)
                    out_ += stroke(x, place(*point.low), x, place(*point.high), color, 1.5);
                if (chart.kind == Document::Chart::Kind::lines && before != nullptr)
                    out_ += stroke(across(before->x), place(before->y), x, place(point.y), color, 1.5);
                out_ += dot(x, place(point.y), color);
                before = &point;
            }
        }
        if (chart.x_text != nullptr) {
            text(left, bottom + 18, small, svg_faint, chart.x_text(first));
            text(left + wide, bottom + 18, small, svg_faint, chart.x_text(last), to_end);
        }
        y_ = bottom + 26;
    }

    void draw(const Document::Ways& ways) {
        Document part;
        part.add(ways);
        as_they_are(to_text(part, {.unicode = true}));
    }

    void draw(const Document::Drawing& drawing) {
        out_ += svg_at(margin, y_ + 14, drawing.svg);
        widen(margin + drawing.width);
        y_ += 14 + drawing.height;
    }

    const Document& document_;
    std::string out_;
    double y_ = 0, width_ = page_width - margin;
};

} // namespace

std::string xml_text(std::string_view text) {
    std::string result;
    for (const char c : affinityd::escaped_lines(text))
        result += c == '&'   ? "&amp;"
                  : c == '<' ? "&lt;"
                  : c == '>' ? "&gt;"
                  : c == '"' ? "&quot;"
                             : std::string(1, c);
    return result;
}

std::string svg_text(double x, double y, double size, std::string_view color, std::string_view text,
                     std::string_view more) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" fill=\"{}\" {}>{}</text>\n", x, y,
                       size, color, more, xml_text(text));
}

std::string svg_rect(double x, double y, double width, double height, std::string_view fill,
                     std::string_view more) {
    return fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" {}/>\n", x, y, width,
        height, fill, more);
}

std::string svg_at(double x, double y, std::string_view elements) {
    return fmt::format("<g transform=\"translate({:.1f} {:.1f})\">\n{}</g>\n", x, y, elements);
}

std::string to_svg(const Document& document) { return Sheet(document).finish(); }

} // namespace affinityctl

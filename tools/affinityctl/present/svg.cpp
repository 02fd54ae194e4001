// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/present/svg.hpp"

#include "affinityctl/present/page.hpp"
#include "base/escape.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

namespace affinityctl {

Svg::Svg(double width, double height, std::string_view title) {
    text_ = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
                        "viewBox=\"0 0 {0:.0f} {1:.0f}\" "
                        "font-family=\"sans-serif\">\n<title>{2}</title>\n<rect width=\"100%\" "
                        "height=\"100%\" fill=\"white\"/>\n",
                        width, height, xml_text(title));
}

void Svg::text(double x, double y, std::string_view text, double size, Anchor anchor) {
    const char* where = anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
    text_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" text-anchor=\"{}\">{}</text>\n", x,
                    y, size, where, xml_text(text));
}

void Svg::rect(double x, double y, double width, double height, std::string_view color) {
    text_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
                         x, y, width, height, color);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view color, double width) {
    text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
                         "stroke-width=\"{:.1f}\"/>\n",
                         x1, y1, x2, y2, color, width);
}

void Svg::circle(double x, double y, double radius, std::string_view color) {
    text_ +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"/>\n", x, y, radius, color);
}

std::string Svg::finish() {
    text_ += "</svg>\n";
    return std::move(text_);
}

std::string xml_text(std::string_view text) {
    std::string result;
    for (const char c : affinityd::escaped_lines(text))
        switch (c) {
        case '&':
            result += "&amp;";
            break;
        case '<':
            result += "&lt;";
            break;
        case '>':
            result += "&gt;";
            break;
        case '"':
            result += "&quot;";
            break;
        default:
            result += c;
        }
    return result;
}

std::string svg_text(double x, double y, double size, std::string_view color, std::string_view text,
                     std::string_view more) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" fill=\"{}\"{}{}>{}</text>\n", x, y,
                       size, color, more.empty() ? "" : " ", more, xml_text(text));
}

std::string svg_two_texts(double x, double y, const StyledText& strong, const StyledText& rest) {
    return fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\"><tspan font-size=\"{}\" fill=\"{}\" font-weight=\"600\">{}</tspan>"
        "<tspan font-size=\"{}\" fill=\"{}\" dx=\"7\">{}</tspan></text>\n",
        x, y, strong.size, strong.color, xml_text(strong.text), rest.size, rest.color, xml_text(rest.text));
}

std::string svg_title(std::string_view text) { return "<title>" + xml_text(text) + "</title>"; }

namespace {
constexpr double letter_width = 0.6; // of their size: the wide ones of usual sans-serif fonts on average
} // namespace

std::vector<std::string> note_lines(std::span<const std::string> sentences, double width, double size) {
    const Page page{.width = static_cast<std::size_t>(width / (letter_width * size))};
    std::vector<std::string> lines;
    for (const auto& sentence : sentences) {
        const auto text = wrapped(sentence, "", page);
        for (const auto line : affinityd::split(std::string_view(text).substr(0, text.size() - 1), '\n'))
            lines.emplace_back(line);
    }
    return lines;
}

double draw_notes(Svg& svg, double x, double y, std::span<const std::string> lines, double size) {
    for (const auto& line : lines)
        svg.text(x, y += note_leading, line, size);
    return y;
}

} // namespace affinityctl

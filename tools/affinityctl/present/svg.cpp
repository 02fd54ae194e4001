// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/present/svg.hpp"

#include "affinityctl/present/page.hpp"
#include "base/escape.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

namespace affinityctl {

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

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/svg_text.hpp"

#include "base/escape.hpp"

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

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/svg_text.hpp"

#include "base/utf8.hpp"

#include <fmt/format.h>

namespace affinityctl {

namespace {

/// Bytes of the UTF-8 character that begins here; 0 if none does, or one that XML does not allow or a viewer
/// would act upon.
std::size_t utf8_length(std::string_view text) {
    const auto [bytes, point] = affinityd::first_character(text);
    const bool is_excluded = point == 0xfffe || point == 0xffff || (point >= 0x80 && point < 0xa0);
    return is_excluded ? 0 : bytes;
}

} // namespace

std::string xml_text(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const char c = text.front();
        std::size_t length = 1;
        if (c == '&')
            result += "&amp;";
        else if (c == '<')
            result += "&lt;";
        else if (c == '>')
            result += "&gt;";
        else if (c == '"')
            result += "&quot;";
        else if (c == '\n' || (c >= 0x20 && c < 0x7f))
            result += c;
        else if (length = static_cast<unsigned char>(c) >= 0x80 ? utf8_length(text) : 0; length > 0)
            result += text.substr(0, length);
        else
            result += '?', length = 1;
        text.remove_prefix(length);
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

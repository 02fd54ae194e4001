// SPDX-License-Identifier: Apache-2.0
#include "svg.hpp"

#include "host/file.hpp"
#include "say.hpp"

#include <fmt/format.h>

namespace affinityctl {

namespace {

/// As XML 1.0 wants it; control characters are not allowed there at all.
std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
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
            result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
            break;
        }
    }
    return result;
}

} // namespace

Svg::Svg(double width, double height, std::string_view title) {
    text_ = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
                        "viewBox=\"0 0 {0:.0f} {1:.0f}\" "
                        "font-family=\"sans-serif\">\n<title>{2}</title>\n<rect width=\"100%\" "
                        "height=\"100%\" fill=\"white\"/>\n",
                        width, height, escaped(title));
}

void Svg::text(double x, double y, std::string_view text, double size, Anchor anchor) {
    const char* where = anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
    text_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" text-anchor=\"{}\">{}</text>\n", x,
                    y, size, where, escaped(text));
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

int write_svg(const std::string& path, const std::string& document) {
    if (const auto done = affinityd::host::replace_file(path, document); !done)
        return complain({exit_failure, done.error().to_string()});
    return exit_ok;
}

} // namespace affinityctl

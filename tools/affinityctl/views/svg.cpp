// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/svg.hpp"

#include "affinityctl/views/svg_text.hpp"

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

} // namespace affinityctl

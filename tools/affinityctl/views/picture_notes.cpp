// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/picture_notes.hpp"

#include "affinityctl/views/page.hpp"
#include "affinityctl/views/svg.hpp"
#include "base/text.hpp"

namespace affinityctl {

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

// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/heat_shades.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace affinityctl {

namespace {

/// 0: nothing, 1 .. 4: up to a quarter, a half, three quarters, all.
std::size_t shade_of(double share) {
    if (share <= 0) return 0;
    return static_cast<std::size_t>(std::clamp(std::ceil(share * 4), 1.0, 4.0));
}

} // namespace

std::string shaded(const std::string& text, double share, const Page& page) {
    constexpr const char* looks[] = {"", "\033[48;5;195;38;5;16m", "\033[48;5;117;38;5;16m",
                                     "\033[48;5;32;38;5;231m", "\033[48;5;25;38;5;231m"};
    const auto shade = shade_of(share);
    return !page.color || shade == 0 ? text : looks[shade] + text + "\033[0m";
}

std::string shade_cell(double share, const Page& page) {
    constexpr const char* plain[] = {". ", "::", "++", "**", "##"};
    constexpr const char* blocks[] = {"\u00b7 ", "\u2591\u2591", "\u2592\u2592", "\u2593\u2593",
                                      "\u2588\u2588"};
    if (page.color) return shaded(shade_of(share) == 0 ? ". " : "  ", share, page);
    return (page.unicode ? blocks : plain)[shade_of(share)];
}

std::string column_heads(const std::vector<unsigned>& numbers, std::size_t width, const std::string& corner) {
    std::string lines;
    if (width == heat_wide) {
        lines = fmt::format("{:>{}}", corner, heat_label);
        for (const unsigned number : numbers)
            lines += fmt::format("{:>{}}", number, heat_wide);
        return lines + "\n";
    }
    const auto digits = std::to_string(*std::ranges::max_element(numbers)).size();
    for (std::size_t digit = 0; digit < digits; ++digit) {
        auto line = fmt::format("{:>{}}", digit == 0 ? corner : "", heat_label) + " ";
        for (const unsigned number : numbers)
            line += fmt::format("{:>{}}", number, digits)[digit] + std::string(" ");
        line.erase(line.find_last_not_of(' ') + 1);
        lines += line + "\n";
    }
    return lines;
}

std::string row_head(unsigned number, std::size_t width) {
    return fmt::format("{:>{}}", number, heat_label) + (width == heat_narrow ? " " : "");
}

std::string heat_color(double share) {
    const auto between = [&](double from, double to) {
        return static_cast<int>(std::lround(from + (to - from) * std::clamp(share, 0.0, 1.0)));
    };
    return fmt::format("#{:02x}{:02x}{:02x}", between(247, 90), between(251, 165), between(255, 215));
}

} // namespace affinityctl

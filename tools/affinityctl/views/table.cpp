// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/table.hpp"

#include <algorithm>

namespace affinityctl {

std::string printable(std::string_view text) {
    // A second set of control characters, 80 to 9F, follows ASCII; in UTF-8 they are C2 80 to C2 9F.
    const auto second_set = [&](std::size_t i) {
        return i < text.size() && static_cast<unsigned char>(text[i]) >= 0x80 &&
               static_cast<unsigned char>(text[i]) < 0xa0;
    };
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const bool written_as_two = byte == 0xc2 && second_set(i + 1);
        const bool stray = second_set(i) && (i == 0 || static_cast<unsigned char>(text[i - 1]) < 0x80);
        result += byte < 0x20 || byte == 0x7f || written_as_two || stray ? '?' : text[i];
        if (written_as_two) ++i;
    }
    return result;
}

std::string bold(const std::string& text, bool color) { return color ? "\033[1m" + text + "\033[0m" : text; }

std::string Table::to_string(bool color) const {
    std::vector<std::size_t> widths(heading_.size());
    const auto measure = [&](const std::vector<std::string>& row) {
        for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
            widths[i] = std::max(widths[i], row[i].size());
    };
    measure(heading_);
    std::ranges::for_each(rows_, measure);
    const auto line = [&](const std::vector<std::string>& row) {
        std::string text;
        for (std::size_t i = 0; i < row.size(); ++i) {
            text += printable(row[i]);
            if (i + 1 < row.size()) text += std::string(widths[i] - row[i].size() + 2, ' ');
        }
        return text;
    };
    std::string text = bold(line(heading_), color) + "\n";
    for (const auto& row : rows_)
        text += line(row) + "\n";
    return text;
}

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>

namespace affinityctl {

std::string printable(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    return result;
}

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
    std::string text = color ? "\033[1m" + line(heading_) + "\033[0m\n" : line(heading_) + "\n";
    for (const auto& row : rows_)
        text += line(row) + "\n";
    return text;
}

} // namespace affinityctl

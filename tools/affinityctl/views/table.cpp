// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/table.hpp"

#include "base/escape.hpp"

#include <algorithm>
#include <utility>

namespace affinityctl {

std::string printable(std::string_view text) { return affinityd::escaped(text); }

std::string bold(const std::string& text, bool color) { return color ? "\033[1m" + text + "\033[0m" : text; }

void Table::add(std::vector<std::string> row) {
    for (auto& cell : row)
        cell = printable(cell);
    rows_.push_back(std::move(row));
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
            text += row[i];
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

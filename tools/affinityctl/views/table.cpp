// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/table.hpp"

#include "base/escape.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace affinityctl {

namespace {
constexpr std::size_t gap = 2;             // between columns
constexpr std::size_t least_cut_width = 6; // of a column that is cut
} // namespace

std::string printable(std::string_view text) { return affinityd::escaped(text); }

std::string bold(const std::string& text, bool color) { return color ? "\033[1m" + text + "\033[0m" : text; }

void Table::add(std::vector<std::string> row) {
    for (auto& cell : row)
        cell = printable(cell);
    rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::widths_for(const Page& page) const {
    std::vector<std::size_t> widths(heading_.size());
    const auto measure = [&](const std::vector<std::string>& row) {
        for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
            widths[i] = std::max(widths[i], columns_of(row[i]));
    };
    measure(heading_);
    std::ranges::for_each(rows_, measure);
    if (page.width == 0) return widths;
    const auto total = [&] {
        return std::accumulate(widths.begin(), widths.end(), gap * (widths.size() - 1));
    };
    const auto shrink = [&](auto first, auto last) {
        for (auto widest = std::max_element(first, last);
             widest != last && total() > page.width && *widest > least_cut_width;
             widest = std::max_element(first, last))
            --*widest;
    };
    shrink(widths.begin() + 1, widths.end());
    shrink(widths.begin(), widths.end());
    return widths;
}

Table Table::with_columns(const std::vector<std::size_t>& columns) const {
    const auto chosen = [&](const std::vector<std::string>& row) {
        std::vector<std::string> cells;
        for (const std::size_t column : columns)
            cells.push_back(column < row.size() ? row[column] : "");
        return cells;
    };
    Table part(chosen(heading_));
    for (const auto& row : rows_)
        part.rows_.push_back(chosen(row)); // printable already
    return part;
}

std::string Table::folded(const Page& page, std::size_t keys) const {
    const auto widths = widths_for(Page{});
    std::string text;
    for (std::size_t next = keys; next < widths.size();) {
        std::vector<std::size_t> columns(keys);
        std::iota(columns.begin(), columns.end(), 0);
        auto used =
            std::accumulate(widths.begin(), widths.begin() + static_cast<std::ptrdiff_t>(keys), gap * keys);
        do {
            used += widths[next] + gap;
            columns.push_back(next++);
        } while (next < widths.size() && (page.width == 0 || used + widths[next] <= page.width));
        text += (text.empty() ? "" : "\n") + with_columns(columns).to_string(page);
    }
    return text;
}

std::string Table::to_string(const Page& page) const {
    const auto widths = widths_for(page);
    const auto line = [&](const std::vector<std::string>& row) {
        std::string text;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const auto cell = cut(row[i], widths[i], page);
            text += cell;
            if (i + 1 < row.size()) text += std::string(widths[i] - columns_of(cell) + gap, ' ');
        }
        text.erase(text.find_last_not_of(' ') + 1);
        return page.width == 0 ? text : cut(text, page.width, page);
    };
    std::string text = bold(line(heading_), page.color) + "\n";
    for (const auto& row : rows_)
        text += line(row) + "\n";
    return text;
}

} // namespace affinityctl

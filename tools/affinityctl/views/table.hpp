// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/page.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace affinityctl {

/// Rows under a heading. Each column is as wide as its widest cell; the last one has no padding.
class Table {
  public:
    explicit Table(std::vector<std::string> heading) : heading_(std::move(heading)) {}
    void add(std::vector<std::string> row);
    [[nodiscard]] bool empty() const { return rows_.empty(); }
    /// Each row ends its line; the heading is bold where colour is wanted.
    [[nodiscard]] std::string to_string(bool color) const { return to_string(Page{.color = color}); }
    /// No line is wider than the page: the widest columns are cut; the first, by which rows are told apart,
    /// only where all others are as narrow as can be.
    [[nodiscard]] std::string to_string(const Page& page) const;
    /// As several tables, one below the other, where one would be wider than the page: nothing is cut as long
    /// as a column fits beside the first `keys` ones, by which rows are told apart, and which each table has.
    [[nodiscard]] std::string folded(const Page& page, std::size_t keys = 1) const;

  private:
    [[nodiscard]] Table with_columns(const std::vector<std::size_t>& columns) const;
    [[nodiscard]] std::vector<std::size_t> widths_for(const Page& page) const;
    std::vector<std::string> heading_;
    std::vector<std::vector<std::string>> rows_;
};

/// Names of processes may be any bytes: none that a terminal would act upon reaches it (base/escape.hpp).
[[nodiscard]] std::string printable(std::string_view text);

/// In bold where colour is wanted.
[[nodiscard]] std::string bold(const std::string& text, bool color);

} // namespace affinityctl

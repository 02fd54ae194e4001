// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/page.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace affinityctl {

// Heat maps are alike: a number at each row and column, and cells whose shade says how much, 0 to 1. Cells
// with figures are heat_wide columns wide, those without heat_narrow.
inline constexpr std::size_t heat_label = 8, heat_wide = 5, heat_narrow = 2;

/// A text on the shade of its share; 0, and a page without colour, leave it as it is.
[[nodiscard]] std::string shaded(const std::string& text, double share, const Page& page);
/// A narrow cell without figures.
[[nodiscard]] std::string shade_cell(double share, const Page& page);
/// Lines with the numbers of the columns, one digit below the other where these are narrow; `corner` stands
/// before the first.
[[nodiscard]] std::string column_heads(const std::vector<unsigned>& numbers, std::size_t width,
                                       const std::string& corner);
/// The number of a row, with what separates it from the cells.
[[nodiscard]] std::string row_head(unsigned number, std::size_t width);

/// For pictures: from white to a blue on which black can be read.
[[nodiscard]] std::string heat_color(double share);

} // namespace affinityctl

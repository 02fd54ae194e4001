// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace affinityctl {

/// What a text is read on.
struct Page {
    std::size_t width = 0; ///< columns of a line; 0: as many as it takes
    bool color = false;
    bool unicode = false; ///< it shows more than ASCII

    /// Standard output: as wide as its terminal. COLUMNS says so for anything else; without it, lines are as
    /// long as they get.
    [[nodiscard]] static Page of_output(bool color);
};

/// Columns that a text takes on a terminal. Wide characters count as two, and so do some that are not: a line
/// that fits by this count fits.
[[nodiscard]] std::size_t columns_of(std::string_view text);

/// At most `columns` of it, with a mark at the end where something is left out.
[[nodiscard]] std::string cut(std::string_view text, std::size_t columns, const Page& page);

/// Lines of at most the page's width, broken between words; the first begins with `first`, the others with as
/// many spaces. Words that are longer than a line are broken, too. Ends with a line end.
[[nodiscard]] std::string wrapped(std::string_view text, std::string_view first, const Page& page);

} // namespace affinityctl

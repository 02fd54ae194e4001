// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace affinityctl {

using WallTime = std::chrono::system_clock::time_point;

/// A time as the daemon writes it: "2026-11-23T01:46:33Z", or seconds since 1970; no value: it is none.
[[nodiscard]] std::optional<WallTime> time_in(const nlohmann::json& value);

/// How long ago that was: "12 s", "3 min", "2 h", "5 days". A time to come, as a clock was set, is "0 s".
[[nodiscard]] std::string age_of(WallTime then, WallTime now);

/// "2026-11-28 18:40:12", of seconds since 1970.
[[nodiscard]] std::string local_time(long long seconds);

/// The place where a text is read.
struct Page {
    std::size_t width = 0; ///< columns of a line; 0: as many as it takes
    bool color = false;
    bool unicode = false; ///< it shows more than ASCII

    /// Standard output: as wide as its terminal. COLUMNS says so for anything else if `by_columns`; without
    /// it, lines are as long as they get.
    [[nodiscard]] static Page of_output(bool color, bool by_columns);
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

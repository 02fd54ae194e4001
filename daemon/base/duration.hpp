// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace affinityd {

/// A time as people write it in settings and policies: "30" and "30s" are seconds, "500ms", "5m", "2h", "1d".
/// No value for anything else, and for more than 86,400 of a unit.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// The same the other way round, in the largest unit that divides it: "2s", "500ms", "0".
[[nodiscard]] std::string to_text(std::chrono::milliseconds time);

} // namespace affinityd

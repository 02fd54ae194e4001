// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <vector>

namespace affinityd {

/// Of ASCII, whatever the locale.
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Without spaces, tabs, line ends and NUL bytes at both ends (kernel files end in "\n", some recordings in
/// NUL).
[[nodiscard]] std::string_view trim_text(std::string_view text);

/// The parts between the separators, empty parts included; "" gives one empty part.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// The words between runs of spaces and tabs.
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text);

/// The whole text as a decimal number in T's range; no value if the text is anything else.
template <std::integral T>
[[nodiscard]] std::optional<T> parse_number(std::string_view text) {
    T value{};
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

} // namespace affinityd

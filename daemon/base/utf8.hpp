// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace affinityd {

/// A character of UTF-8 text.
struct Utf8Character {
    std::size_t bytes = 0;   ///< 1 to 4; 0: the text does not begin with a well-formed character
    std::uint32_t point = 0; ///< its code point
};

/// The character that the text begins with; Unicode 15, table 3-7: no overlong forms, no surrogates, nothing
/// above U+10FFFF.
[[nodiscard]] Utf8Character first_character(std::string_view text);

/// True for the second to fourth bytes of characters.
[[nodiscard]] constexpr bool is_utf8_continuation(char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

/// The text as UTF-8 without NUL: each byte that is not part of a well-formed character becomes U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);

} // namespace affinityd

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace affinityd {

// Names of processes, units, files and interrupts may be any bytes, also hostile ones. Bytes that
// a terminal, a log or a viewer would act upon instead of showing them are written as numbers: control
// characters (C0, DEL, C1), ends of lines and paragraphs (U+2028, U+2029), marks that turn the direction of
// writing (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), the byte order mark, characters that
// are none (U+FFFE, U+FFFF), and bytes that are no UTF-8.

/// For one line of a log, a table or a picture: "\n", "\x1b", "\u202e".
[[nodiscard]] std::string escaped(std::string_view text);
/// The same for a text of several lines of our own: line ends stay.
[[nodiscard]] std::string escaped_lines(std::string_view text);
/// For JSON that is valid UTF-8: the same characters as JSON's own escapes, so that a reader of the JSON gets
/// the text as it was. Line ends between values stay.
[[nodiscard]] std::string escaped_json(std::string document);

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

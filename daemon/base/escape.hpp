// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace affinityd {

// Names of processes, units, files and interrupts may be any bytes, and whoever chose them may mean ill. What
// a terminal, a log or a viewer would act upon instead of showing it is written as its number: control
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

} // namespace affinityd

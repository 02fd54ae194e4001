// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace affinityd {

/// Shell pattern over the whole text: '*' any run of characters (also '/'), '?' one character, '[a-z]' and
/// '[!a-z]' sets, '\' takes the next character literally. Linear in pattern times text, whatever the pattern:
/// patterns come from files and texts from hostile processes. An unclosed '[' is a literal bracket.
[[nodiscard]] bool glob_match(std::string_view pattern, std::string_view text);

/// Bytes of the shortest text that the pattern matches.
[[nodiscard]] std::size_t shortest_match(std::string_view pattern);

/// The beginning of the pattern that stands for exactly `length` bytes; "" if it has none, because it is
/// shorter or a '*' comes before.
[[nodiscard]] std::string_view glob_beginning(std::string_view pattern, std::size_t length);

/// True if the pattern holds none of * ? [ \ and so matches itself only.
[[nodiscard]] bool is_literal_glob(std::string_view pattern);

} // namespace affinityd

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace affinityd {

/// Shell pattern over the whole text: '*' any run of characters (also '/'), '?' one character, '[a-z]' and
/// '[!a-z]' sets, '\' takes the next character literally. Linear in pattern times text, whatever the pattern:
/// patterns come from files and texts from hostile processes. An unclosed '[' is a literal bracket.
[[nodiscard]] bool glob_match(std::string_view pattern, std::string_view text);

/// True if the pattern holds none of * ? [ \ and so matches itself only.
[[nodiscard]] bool is_literal_glob(std::string_view pattern);

} // namespace affinityd

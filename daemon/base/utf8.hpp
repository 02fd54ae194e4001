// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace affinityd {

/// The text as UTF-8 without NUL: each byte that is not part of a well-formed character (Unicode 15, table
/// 3-7) becomes U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);

} // namespace affinityd

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace affinityd::policy {

/// The word most like a mistyped one, letter case aside; "" if none is near. The first of equals wins.
[[nodiscard]] std::string_view nearest_word(std::string_view typed, std::span<const std::string_view> words);

/// "did you mean 'cpus'?", or "" if no word is near.
[[nodiscard]] std::string did_you_mean(std::string_view typed, std::span<const std::string_view> words);

/// In single quotes, cut after 60 bytes, control characters shown as '?': for messages about any text.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// "a, b or c".
[[nodiscard]] std::string either(std::span<const std::string_view> words);

} // namespace affinityd::policy

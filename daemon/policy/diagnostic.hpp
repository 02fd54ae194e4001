// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/policy.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::policy {

enum class Severity { note, warning, error };
[[nodiscard]] std::string_view to_string(Severity severity);

/// A finding about a policy file.
struct Diagnostic {
    Severity severity = Severity::error;
    Position at;             ///< file:line:column of the first offending byte
    unsigned length = 1;     ///< bytes to underline
    std::string message;     ///< what is wrong
    std::string hint;        ///< what would be right ("did you mean 'cpus'?"); may be empty
    std::string source_line; ///< the line of the file, for the underline; may be empty
};

/// Without its source line: add_source_lines() adds it.
[[nodiscard]] inline Diagnostic finding(Severity severity, Position at, std::size_t length,
                                        std::string message, std::string hint = {}) {
    return {severity, std::move(at), static_cast<unsigned>(length), std::move(message), std::move(hint), {}};
}

/// "file:line:column: error: message (hint)" and, with `source`, the line and carets below it. For a
/// terminal: what it would act upon is escaped (base/escape.hpp), also in the names of files.
[[nodiscard]] std::string to_string(const Diagnostic& diagnostic, bool source = false);

/// The word most like a mistyped one, letter case aside; "" if none is near. The first of equals wins.
[[nodiscard]] std::string_view nearest_word(std::string_view typed, std::span<const std::string_view> words);

/// "did you mean 'cpus'?", or "" if no word is near.
[[nodiscard]] std::string did_you_mean(std::string_view typed, std::span<const std::string_view> words);

/// In single quotes, cut after 60 bytes, control characters shown as '?': for messages about any text.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// "a, b or c".
[[nodiscard]] std::string either(std::span<const std::string_view> words);

} // namespace affinityd::policy

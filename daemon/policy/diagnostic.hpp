// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/policy.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace affinityd::policy {

enum class Severity { note, warning, error };
[[nodiscard]] std::string_view to_string(Severity severity);

/// One finding about a policy file.
struct Diagnostic {
    Severity severity = Severity::error;
    Position at;             ///< file:line:column of the first offending byte
    unsigned length = 1;     ///< bytes to underline
    std::string message;     ///< what is wrong
    std::string hint;        ///< what would be right ("did you mean 'cpus'?"); may be empty
    std::string source_line; ///< the line of the file, for the underline; may be empty
};

/// "file:line:column: error: message (hint)" and, with `source`, the line and carets below it. For a
/// terminal: what it would act upon is escaped (base/escape.hpp), also in the names of files.
[[nodiscard]] std::string to_string(const Diagnostic& diagnostic, bool source = false);

} // namespace affinityd::policy

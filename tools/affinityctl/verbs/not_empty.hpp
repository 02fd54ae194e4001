// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace affinityctl {

/// For options that mean "all" or "none" where they are left out: an empty text, as of a variable of a script
/// that was never set, means neither.
inline CLI::Validator not_empty() {
    return {[](const std::string& text) {
                return text.empty() ? std::string("expected a value, and this is empty") : std::string();
            },
            ""};
}

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace affinityctl {

/// For options that mean "all" or "none" where they are left out: an empty text, as of a variable of a script
/// that was never set, means neither.
inline CLI::Validator not_empty() {
    return {[](const std::string& text) {
                return text.empty() ? std::string("expected a value, and this is empty") : std::string();
            },
            ""};
}

/// As CLI::Range, which takes "nan" to lie in every range. `low` and `high` are in it.
inline CLI::Validator in_range(double low, double high) {
    auto range = CLI::Range(low, high);
    return range & CLI::Validator(
                       [](const std::string& text) {
                           return std::isnan(std::strtod(text.c_str(), nullptr))
                                      ? std::string("expected a number, and this is none")
                                      : std::string();
                       },
                       "");
}

/// --interval as a duration; 0 seconds: not given.
[[nodiscard]] inline std::optional<std::chrono::milliseconds> interval_of(double seconds) {
    if (seconds <= 0) return std::nullopt;
    return std::chrono::milliseconds(static_cast<long>(seconds * 1000));
}

} // namespace affinityctl

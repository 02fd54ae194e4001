// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>

namespace affinityctl {

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

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.hpp"

#include <CLI/CLI.hpp>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

/// For options that mean "all" or "none" where they are left out: an empty text, as of a variable of a script
/// that was never set, means neither.
inline CLI::Validator not_empty() {
    return {[](const std::string& text) {
                return text.empty() ? std::string("expected a value, and this is empty") : std::string();
            },
            ""};
}

/// As CLI::Range, which takes "nan" to lie in every range, and shows its own names of types in help. `low`
/// and `high` are in it.
template <class T>
CLI::Validator in_range(T low, T high) {
    auto range = CLI::Range(low, high);
    range.description("");
    return range & CLI::Validator(
                       [](const std::string& text) {
                           return std::isnan(std::strtod(text.c_str(), nullptr))
                                      ? std::string("expected a number, and this is none")
                                      : std::string();
                       },
                       "");
}

/// For ->transform(): beside numbers of `unit`, times as policies have them, 300ms or 2s.
inline CLI::Validator or_time(std::chrono::duration<double> unit) {
    return {[unit](std::string& text) {
                if (text.empty() || std::isalpha(static_cast<unsigned char>(text.back())) == 0)
                    return std::string();
                if (const auto time = affinityd::parse_duration(text))
                    text = fmt::format("{}", std::chrono::duration<double>(*time) / unit);
                return std::string();
            },
            ""};
}

/// An option that may be given again; each takes one value.
inline CLI::Option* add_repeated(CLI::App& verb, const std::string& name, std::vector<std::string>& into,
                                 const std::string& help, const std::string& type) {
    return verb.add_option(name, into, help)
        ->type_name(type)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// An option that takes a time: "300ms", "2s", "1.5" (seconds). `shortest` to an hour.
inline CLI::Option* add_time(CLI::App& verb, const std::string& name, std::chrono::milliseconds& into,
                             std::chrono::milliseconds shortest, const std::string& help) {
    const auto read = [&into, shortest](const std::string& text) {
        auto time = affinityd::parse_duration(text);
        char* end = nullptr;
        const double seconds = std::strtod(text.c_str(), &end);
        if (!time && !text.empty() && *end == '\0' && seconds > 0 && seconds <= 3600)
            time = std::chrono::milliseconds(static_cast<long>(seconds * 1000));
        if (!time || *time < shortest || *time > std::chrono::hours(1))
            return "expected a time from " + affinityd::to_text(shortest) + " to 1h, as 300ms or 2s";
        into = *time;
        return std::string();
    };
    return verb.add_option(name, help)->type_name("TIME")->check(CLI::Validator(read, ""));
}

} // namespace affinityctl

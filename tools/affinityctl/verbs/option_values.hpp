// SPDX-License-Identifier: Apache-2.0
// Options that several verbs have.
#pragma once

#include "base/text.hpp"

#include <CLI/CLI.hpp>
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

/// As CLI::Range, which shows its own names of types in help. `low` and `high` are in it.
template <class T>
CLI::Validator in_range(T low, T high) {
    auto range = CLI::Range(low, high);
    range.description("");
    return range;
}

using Seconds = std::chrono::duration<double>;

/// For ->transform(): a time as policies have it, 300ms or 2s, or a number of `unit`s, which is what it
/// becomes. Both ends are in it.
inline CLI::Validator time_from(Seconds shortest, Seconds longest, Seconds unit = Seconds(1)) {
    return {[=](std::string& text) {
                char* end = nullptr;
                Seconds time = std::strtod(text.c_str(), &end) * unit;
                if (*end != '\0')
                    time = affinityd::parse_duration(text).value_or(std::chrono::milliseconds(-1));
                if (!(time >= shortest && time <= longest)) // nan is neither
                    return fmt::format("expected a time from {:g} to {:g} s, as 300ms or 2s",
                                       shortest.count(), longest.count());
                text = fmt::format("{}", time / unit);
                return std::string();
            },
            ""};
}

/// An option that takes a time, in seconds where no unit is given, of `shortest` to an hour.
inline CLI::Option* add_time(CLI::App& verb, const std::string& name, std::chrono::milliseconds& into,
                             std::chrono::milliseconds shortest, const std::string& help) {
    return verb
        .add_option_function<double>(
            name,
            [&into](const double& seconds) {
                into = std::chrono::round<std::chrono::milliseconds>(Seconds(seconds));
            },
            help)
        ->type_name("TIME")
        ->transform(time_from(shortest, std::chrono::hours(1)));
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

/// --svg FILE. `help`: "also draw it into this file".
inline CLI::Option* add_picture(CLI::App& verb, std::string& into, const std::string& help) {
    return verb.add_option("--svg", into, help + " (- is standard output)")
        ->type_name("FILE")
        ->check(not_empty());
}

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/watch_options.hpp"

#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/picture.hpp"
#include "base/duration.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>

namespace affinityctl {

using std::chrono::milliseconds;

namespace {
constexpr milliseconds shortest{100}, longest{std::chrono::hours(1)};
} // namespace

void add_watch_options(CLI::App& verb, WatchOptions& options, const std::string& picture) {
    verb.add_option("--for", options.time, "how long to watch")->type_name("TIME")->capture_default_str();
    verb.add_option("--svg", options.svg, "also draw " + picture + " into this file (- is standard output)")
        ->type_name("FILE")
        ->check(not_empty());
}

std::expected<milliseconds, CallError>
check_watch_options(const WatchOptions& options, const Globals& globals, const std::string& why_root) {
    const auto time = affinityd::parse_duration(options.time);
    if (!time || *time < shortest || *time > longest)
        return std::unexpected(CallError{exit_usage, "--for: expected a time from 100ms to 1h, as 10s"});
    if (const auto picture = check_picture(globals, options.svg); !picture)
        return std::unexpected(picture.error());
    if (::geteuid() != 0) return std::unexpected(CallError{exit_failure, why_root + ": run it as root"});
    return *time;
}

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/daemon/call.hpp"
#include "affinityctl/values/globals.hpp"

#include <chrono>
#include <expected>
#include <string>

namespace CLI {
class App;
}

namespace affinityctl {

/// What verbs have that watch for a time and draw what they saw.
struct WatchOptions {
    std::string time = "10s"; ///< --for
    std::string svg;          ///< --svg; "": none; "-": standard output
};

/// `picture`: what --svg draws: "the heat map".
void add_watch_options(CLI::App& verb, WatchOptions& options, const std::string& picture);

/// For how long, if all is as it should be: a time that makes sense, a picture that can be written, root.
/// `why_root`: "locality looks at the sockets of all processes".
[[nodiscard]] std::expected<std::chrono::milliseconds, CallError>
check_watch_options(const WatchOptions& options, const Globals& globals, const std::string& why_root);

} // namespace affinityctl

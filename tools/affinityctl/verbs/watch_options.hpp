// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/client/call.hpp"
#include "affinityctl/present/globals.hpp"

#include <chrono>
#include <expected>
#include <string>

namespace CLI {
class App;
}

namespace affinityctl {

/// Gives up, for good, all capabilities(7) but those that watching needs once it has begun: reading BPF maps,
/// looking at processes and their sockets, and writing the picture where the user says. Programs that are
/// started get no more than these either. Those that a kernel does not know are passed over.
void keep_few_capabilities();

/// Options of verbs that watch for a time and draw what they saw.
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

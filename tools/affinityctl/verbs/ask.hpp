// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/client/call.hpp"
#include "affinityctl/present/document.hpp"
#include "base/error.hpp"

#include <expected>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace affinityctl {

/// A fault that an answer cannot be made without.
[[nodiscard]] std::unexpected<CallError> failed(const affinityd::Error& error);
[[nodiscard]] std::unexpected<CallError> failed(Exit code, std::string message);

/// Calls a method of the daemon. A recorded machine has none: with --root the error is one of usage.
[[nodiscard]] std::expected<std::string, CallError> ask_daemon(const Globals& globals, const char* method,
                                                               const std::vector<std::string>& arguments = {},
                                                               const Patience& patience = {});

/// The daemon's GetStatus; null if none answers, or with --root: for verbs that work without it.
[[nodiscard]] nlohmann::json status_if_any(const Globals& globals);

/// The fault of --root, for what only the running machine can do.
[[nodiscard]] std::expected<void, CallError> check_is_live(const Globals& globals);

/// The same as ask_daemon; the answer is an object.
[[nodiscard]] std::expected<nlohmann::json, CallError>
ask_daemon_object(const Globals& globals, const char* method, const std::vector<std::string>& arguments = {});

/// Something that the daemon is told to do.
struct Order {
    const char* method;
    std::string argument{}; ///< of Release
    std::string doing{};    ///< for the progress line: "applying"
    bool no_block = false;  ///< it is begun, and not waited for
};
extern const Fields order_answer;

/// Has it done. The answer is the daemon's report, also that it failed.
[[nodiscard]] Outcome tell(const Globals& globals, const Order& order);

/// The option of verbs that tell the daemon something.
void add_no_block(CLI::App& verb, bool& no_block);

} // namespace affinityctl

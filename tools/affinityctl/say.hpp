// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon_call.hpp"

#include <functional>
#include <nlohmann/json.hpp>

namespace affinityctl {

/// Asks the daemon and shows its JSON answer: as it is with --json, else as `show` prints it. The exit code.
int ask_and_show(const Globals& globals, const char* method, const std::vector<std::string>& arguments,
                 const std::function<void(const nlohmann::json&)>& show);

/// Tells the daemon to do something and shows what it says: a line, or with --json {"ok", "message"}. The
/// exit code.
int tell(const Globals& globals, const char* method, const std::vector<std::string>& arguments);

/// Says on standard error what went wrong.
int complain(const CallError& error);

/// A member as text, "-" where it is missing or empty.
[[nodiscard]] std::string text_of(const nlohmann::json& object, const char* key);

} // namespace affinityctl

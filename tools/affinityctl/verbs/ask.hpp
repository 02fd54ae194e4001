// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/daemon/call.hpp"
#include "base/error.hpp"

#include <functional>
#include <nlohmann/json.hpp>

namespace affinityctl {

/// Calls a method of the daemon and prints its JSON answer: unchanged with --json, else by `show`. The exit
/// code.
int ask_and_show(const Globals& globals, const char* method, const std::vector<std::string>& arguments,
                 const std::function<void(const nlohmann::json&)>& show);

/// Calls a method that does something and prints the daemon's reply: a line, or with --json {"ok",
/// "message"}. The exit code.
int tell(const Globals& globals, const char* method, const std::vector<std::string>& arguments);

/// Prints on standard error what went wrong; the exit code.
int complain(const affinityd::Error& error);
int complain(const CallError& error);

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verb.hpp"

#include <expected>
#include <string>
#include <vector>

namespace affinityctl {

struct CallError {
    Exit code = exit_failure;
    std::string message;
};

/// Calls a method of the daemon: over its private socket, which works without a message bus, or where that is
/// not for us (we are not root) over the system bus. Every method takes texts and answers with one.
[[nodiscard]] std::expected<std::string, CallError>
call_daemon(const Globals& globals, const char* method, const std::vector<std::string>& arguments = {});

} // namespace affinityctl

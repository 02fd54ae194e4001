// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/globals.hpp"

#include <chrono>
#include <expected>
#include <string>
#include <vector>

namespace affinityctl {

/// How long an answer is waited for.
struct Patience {
    std::chrono::seconds time{30};
    std::string doing{}; ///< for the progress line; "": there is none
};

/// Calls a method of the daemon over the private socket in `runtime_dir`, which works without a message bus,
/// or, where only root may open that, over the system bus. Every method takes texts and returns one.
[[nodiscard]] std::expected<std::string, CallError>
call_daemon(const std::string& runtime_dir, const char* method,
            const std::vector<std::string>& arguments = {}, const Patience& patience = {});

} // namespace affinityctl

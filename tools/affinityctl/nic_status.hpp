// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace affinityctl {

/// Adds to the interfaces as `nics` prints them what the daemon's status says of their vectors and queues:
/// "wanted", "policy", "why", "original", "error" (of the last refusal, or why it is elsewhere), and "tasks",
/// those under policy that it serves: each with pid, tid and comm. What the daemon has nothing to say of gets
/// no "wanted". Any JSON will do as `status`.
void merge_status(nlohmann::json& nics, const nlohmann::json& status);

/// "nginx 812, nginx 813 and 2 more"; "-" for none.
[[nodiscard]] std::string tasks_text(const nlohmann::json& tasks);

} // namespace affinityctl

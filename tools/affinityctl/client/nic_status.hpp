// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// Adds to the document of `nics` what the daemon's status reports about vectors and queues: "wanted",
/// "policy", "why", "original", "error" (the last refusal, or why it is elsewhere) and "tasks", the tasks
/// under policy that it serves, each with pid, tid and comm. An entry that the daemon does not report gets
/// no "wanted". Accepts any JSON as `status`.
void merge_status(nlohmann::json& nics, const nlohmann::json& status);

/// "nginx 812, nginx 813 and 2 more"; "-" for none.
[[nodiscard]] std::string tasks_text(const nlohmann::json& tasks);

} // namespace affinityctl

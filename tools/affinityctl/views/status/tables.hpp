// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/page.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

// Tables of the daemon's GetStatus, each after an empty line; "" where there is nothing to list.

/// A line for each policy.
[[nodiscard]] std::string policy_rows(const nlohmann::json& status, const Page& page);
/// `out_of_place`: only threads, or queues, that should be elsewhere.
[[nodiscard]] std::string thread_rows(const nlohmann::json& status, bool out_of_place, const Page& page);
[[nodiscard]] std::string queue_rows(const nlohmann::json& status, bool out_of_place, const Page& page);
/// What the traffic of each policy has cost since its policies were loaded, and in the period before.
[[nodiscard]] std::string cost_rows(const nlohmann::json& status, const Page& page);

} // namespace affinityctl

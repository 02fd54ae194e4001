// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// Tables of the daemon's GetStatus, each after an empty line; "" where there is nothing to list.
[[nodiscard]] std::string policy_rows(const nlohmann::json& status, bool color);
[[nodiscard]] std::string thread_rows(const nlohmann::json& status, bool color);
[[nodiscard]] std::string queue_rows(const nlohmann::json& status, bool color);
/// What the traffic of each policy has cost since its policies were loaded, and in the period before.
[[nodiscard]] std::string cost_rows(const nlohmann::json& status, bool color);

/// "IRQ 45 eth0-rx-0", or the queue's own name.
/// Why a queue is where it is, and with whom it shares its interrupt line.
[[nodiscard]] std::string queue_why(const nlohmann::json& queue);
[[nodiscard]] std::string queue_name(const nlohmann::json& queue);

} // namespace affinityctl

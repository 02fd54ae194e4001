// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// Why a queue of a daemon's answer is where it is, and with whom it shares its interrupt line.
[[nodiscard]] std::string queue_why(const nlohmann::json& queue);
/// "IRQ 45 eth0-rx-0", or the queue's own name.
[[nodiscard]] std::string queue_name(const nlohmann::json& queue);

/// Queues of interfaces under one policy.
struct QueueCount {
    std::size_t held = 0; ///< all that belongs to them, interrupts and steering, is in place
    std::size_t wanted = 0;
};

/// By policy, from the daemon's GetStatus. Queues that another policy decides about, and those of a released
/// one, are not counted.
[[nodiscard]] std::map<std::string, QueueCount> queues_by_policy(const nlohmann::json& status);

} // namespace affinityctl

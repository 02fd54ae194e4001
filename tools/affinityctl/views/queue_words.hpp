// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// Why a queue of a daemon's answer is where it is, and with whom it shares its interrupt line.
[[nodiscard]] std::string queue_why(const nlohmann::json& queue);
/// "IRQ 45 eth0-rx-0", or the queue's own name.
[[nodiscard]] std::string queue_name(const nlohmann::json& queue);

} // namespace affinityctl

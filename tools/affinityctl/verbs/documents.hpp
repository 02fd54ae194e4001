// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/document.hpp"

#include <nlohmann/json.hpp>

namespace affinityctl {

/// The daemon's Explain: of a task, of queues and interrupts, or of a policy or unit.
[[nodiscard]] Document explanation(const nlohmann::json& answer);

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// The daemon's Explain for a person: of a task, or of queues and interrupts.
[[nodiscard]] std::string explanation_text(const nlohmann::json& answer, bool color);

} // namespace affinityctl

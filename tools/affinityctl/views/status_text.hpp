// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// The daemon's GetStatus for a person.
[[nodiscard]] std::string status_text(const nlohmann::json& status, bool color);

} // namespace affinityctl

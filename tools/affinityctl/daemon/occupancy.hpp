// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/occupancy.hpp"

#include <nlohmann/json.hpp>

namespace affinityctl {

/// From the daemon's GetStatus. Unexpected parts of it are skipped.
[[nodiscard]] Occupancy occupancy_of_status(const nlohmann::json& status);

} // namespace affinityctl

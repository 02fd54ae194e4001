// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/occupancy.hpp"

#include <nlohmann/json.hpp>

namespace affinityctl {

/// Which of the masks in a status: those that tasks and interrupts have, or those that policies want.
enum class Masks { present, wanted };

/// From the daemon's GetStatus, or the plan for a recorded machine. Unexpected parts of it are skipped.
[[nodiscard]] Occupancy occupancy_of_status(const nlohmann::json& status, Masks masks = Masks::present);

} // namespace affinityctl

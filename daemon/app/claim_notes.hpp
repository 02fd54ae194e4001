// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/task_table.hpp"
#include "app/world.hpp"
#include "planner/action.hpp"

#include <vector>

namespace affinityd::app {

/// Policies that keep everybody off their CPUs, while none of their own programs runs. To be asked once all
/// processes have been seen.
[[nodiscard]] std::vector<planner::Problem> idle_claims(const World& world, const TaskTable& tasks);

} // namespace affinityd::app

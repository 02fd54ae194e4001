// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/task_table.hpp"
#include "app/world.hpp"
#include "planner/action.hpp"
#include "state/journal.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::app {

/// True if no process of the policy is known.
[[nodiscard]] bool is_idle(const World& world, const TaskTable& tasks, std::string_view policy);

/// Says that no process of the policy was ever seen, or that its tasks had CPUs of their own (CPUAffinity= of
/// their unit, taskset), which it replaced; "": neither. To be asked once all processes have been seen.
[[nodiscard]] std::string match_note(const World& world, const TaskTable& tasks,
                                     const state::Journal& journal, std::size_t policy);

/// Policies that keep everybody off their CPUs, while none of their own programs runs. To be asked once all
/// processes have been seen.
[[nodiscard]] std::vector<planner::Problem> idle_claims(const World& world, const TaskTable& tasks);

} // namespace affinityd::app

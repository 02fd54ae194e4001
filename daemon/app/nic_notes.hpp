// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/task_table.hpp"
#include "app/world.hpp"
#include "planner/action.hpp"

#include <string>
#include <vector>

namespace affinityd::app {

// What people are told where it is not known which interfaces serve a process, though its policy goes by
// them.

/// Of one process; "": they are known, or do not matter.
[[nodiscard]] std::string nic_note(const World& world, const KnownProcess& process);
/// Of a policy with this many processes; "": there is nothing to say.
[[nodiscard]] std::string nic_note(const World& world, std::size_t policy, std::size_t processes);
/// Policies with processes in other network namespaces, or in cpusets without the CPUs near the NICs.
[[nodiscard]] std::vector<planner::Problem> nic_problems(const World& world, const TaskTable& tasks);

} // namespace affinityd::app

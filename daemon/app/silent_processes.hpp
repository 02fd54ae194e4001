// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "inventory/command_lines.hpp"
#include "planner/action.hpp"

#include <vector>

namespace affinityd::app {

// Processes whose arguments cannot be read. `lines` may be null.

/// Logs each once.
void log_silent(inventory::CommandLines* lines, Log& log);
/// All of them, for `status`.
[[nodiscard]] std::vector<planner::Problem> silence_problems(const inventory::CommandLines* lines);

} // namespace affinityd::app

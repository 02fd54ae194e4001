// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "enforcer/executor.hpp"

namespace affinityd::app {

/// Logs what became of a change that a person should know of.
void log_notices(Log& log, const std::vector<enforcer::Notice>& notices);

/// Logs a change that was made, where debug messages are shown.
void log_change(Log& log, const planner::Action& action);

} // namespace affinityd::app

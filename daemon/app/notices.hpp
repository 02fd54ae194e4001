// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/notice.hpp"
#include "app/log.hpp"
#include "coexist/other_writers.hpp"
#include "enforcer/executor.hpp"

namespace affinityd::app {

/// Logs what became of a change that a person should know of.
void log_notices(Log& log, const std::vector<enforcer::Notice>& notices);

void log_notices(Log& log, const std::vector<accounting::Notice>& notices);
void log_notices(Log& log, const std::vector<coexist::Notice>& notices);

/// Logs a change that was made, where debug messages are shown.
void log_change(Log& log, const planner::Action& action);

} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/coexistence.hpp"
#include "app/event_queue.hpp"
#include "app/releases.hpp"
#include "app/steering.hpp"
#include "app/task_status.hpp"
#include "app/world.hpp"
#include "enforcer/executor.hpp"
#include "status/status.hpp"

#include <chrono>
#include <vector>

namespace affinityd::app {

// What status says, gathered from those who know it.

/// Every policy with what it holds.
[[nodiscard]] std::vector<status::PolicyStatus> policy_status(const World& world, const Holdings& holdings,
                                                              const enforcer::Executor& executor,
                                                              const Releases& releases,
                                                              const Steering& steering);

/// Refusals and outcomes.
void add_outcomes(const enforcer::Executor& executor, status::Counters& into);

/// That there are no process events, what follows for a daemon with a `pass` this often, and what helps.
[[nodiscard]] std::vector<planner::Problem> event_problems(const EventQueue& events,
                                                           std::chrono::seconds pass, const host::Root& root);

/// That the daemon lacks rights for what is wanted now, and which help.
[[nodiscard]] std::vector<planner::Problem> right_problems(const enforcer::Executor& executor);

void add_coexistence(const Coexistence& coexistence, status::Overview& into);

} // namespace affinityd::app

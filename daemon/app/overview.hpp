// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/coexistence.hpp"
#include "app/event_queue.hpp"
#include "app/listeners.hpp"
#include "app/releases.hpp"
#include "app/task_status.hpp"
#include "app/world.hpp"
#include "enforcer/executor.hpp"
#include "status/status.hpp"

#include <vector>

namespace affinityd::app {

// What status says, gathered from those who know it.

/// Every policy with what it holds.
[[nodiscard]] std::vector<status::PolicyStatus> policy_status(const World& world, const Holdings& holdings,
                                                              const enforcer::Executor& executor,
                                                              const Releases& releases,
                                                              const Listeners& listeners);

/// Refusals and outcomes.
void add_outcomes(const enforcer::Executor& executor, status::Counters& into);

/// What the daemon lacks to do its work, and what helps: rights, and process events.
[[nodiscard]] std::vector<planner::Problem> lack_problems(const enforcer::Executor& executor,
                                                          const EventQueue& events);

void add_coexistence(const Coexistence& coexistence, status::Overview& into);

} // namespace affinityd::app

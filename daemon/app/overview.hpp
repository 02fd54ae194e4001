// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/coexistence.hpp"
#include "app/event_queue.hpp"
#include "app/memory_follower.hpp"
#include "app/releases.hpp"
#include "app/task_table.hpp"
#include "app/world.hpp"
#include "enforcer/executor.hpp"
#include "host/root.hpp"
#include "status/status.hpp"

#include <map>
#include <string>
#include <vector>

namespace affinityd::app {

// What status says, gathered from those who know it.

/// Every policy with what it holds. Counts the threads of all processes: cheap, but not free.
[[nodiscard]] std::vector<status::PolicyStatus> policy_status(const World& world, const TaskTable& tasks,
                                                              const Releases& releases);

[[nodiscard]] status::ProcessStatus process_status(const World& world, const KnownProcess& process,
                                                   const MemoryFollower& memory);
[[nodiscard]] status::ThreadStatus thread_status(const KnownThread& thread, int pid,
                                                 const enforcer::Executor& executor);
/// Reads the thread's mask again: since the last look, somebody may have changed it.
void read_again(const host::Root& root, int pid, const KnownThread& thread, const CpuSet& online,
                status::ThreadStatus& into);

/// Refusals and outcomes.
void add_outcomes(const enforcer::Executor& executor, status::Counters& into);

/// What was put right of each policy, and which threads now wait for that.
void add_drift(const enforcer::Executor& executor, const std::map<std::string, std::size_t>& drifted,
               std::vector<status::PolicyStatus>& into);

/// What the daemon lacks to do its work, and what helps: rights, and process events.
[[nodiscard]] std::vector<planner::Problem> lack_problems(const enforcer::Executor& executor,
                                                          const EventQueue& events);

void add_coexistence(const Coexistence& coexistence, status::Overview& into);

} // namespace affinityd::app

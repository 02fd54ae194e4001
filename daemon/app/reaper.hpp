// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "app/task_table.hpp"
#include "enforcer/executor.hpp"
#include "planner/assignments.hpp"
#include "state/journal.hpp"

#include <optional>
#include <vector>

namespace affinityd::app {

/// Clears away what is known of tasks that have ended: their slots, undo records, refusals and backoffs.
class Reaper {
  public:
    Reaper(enforcer::Enforcer& enforcer, enforcer::Executor& executor, Log& log)
        : enforcer_(enforcer), executor_(executor), log_(log) {}

    /// A thread that is known to have ended.
    void bury(const TaskId& thread, int pid, planner::Assignments& assignments);
    /// A thread that may have ended; `known`: the process's entry, if it has one.
    void bury_if_gone(int pid, const TaskId& thread, KnownProcess* known, planner::Assignments& assignments);

    void begin_pass() {
        cursor_ = 0;
        doubtful_.clear();
    }
    /// Tasks of processes outside `table` that ended while nobody looked. Those of processes in it have just
    /// been seen. True: all of them.
    bool sweep(const TaskTable& table, planner::Assignments& assignments,
               const std::function<bool()>& out_of_time);

  private:
    enforcer::Enforcer& enforcer_;
    enforcer::Executor& executor_;
    Log& log_;
    std::optional<int> cursor_;    ///< up to which pid the sweep of this pass has come; no value: it is over
    int pid_ = 0;                  ///< the process that the sweep has reached
    std::vector<TaskId> doubtful_; ///< its threads that are still to be checked
};

} // namespace affinityd::app

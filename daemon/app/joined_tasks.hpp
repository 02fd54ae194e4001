// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "planner/joined.hpp"

namespace affinityd::app {

/// What threads have asked for themselves, for those who place them.
class JoinedTasks {
  public:
    virtual ~JoinedTasks() = default;
    /// Null: nothing.
    [[nodiscard]] virtual const planner::Joined* find(const TaskId& thread) const = 0;
    /// The thread has ended.
    virtual void ended(const TaskId& thread) = 0;
};

} // namespace affinityd::app

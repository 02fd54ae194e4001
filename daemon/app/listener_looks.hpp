// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "app/tasks.hpp"
#include "planner/action.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace affinityd::app {

/// Looks again at processes that were matched by a list of listeners that has changed since.
class ListenerLooks final : public Job {
  public:
    /// `tasks` must outlive it.
    ListenerLooks(Tasks& tasks, std::vector<int> pids) : tasks_(tasks), pids_(std::move(pids)) {}
    bool step(const OutOfTime& out_of_time) override;

  private:
    Tasks& tasks_;
    std::vector<int> pids_;
    std::size_t next_ = 0;
};

/// For `status`: listeners that are not known. `list` may be null.
[[nodiscard]] std::vector<planner::Problem> listener_problems(const inventory::ListenerList* list);

} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"

#include <cstddef>
#include <unordered_set>
#include <utility>

namespace affinityd::state {

/// Tasks that lately had an undo record and have it no more. Whatever mask such a task has now, it was not
/// born with it. Kept as long as former masks are (MaskSources): two generations, of at most `most` tasks
/// each; of more than that, the eldest are forgotten.
class FormerTasks {
  public:
    static constexpr std::size_t most = 16384;

    void add(const TaskId& task) {
        if (present_.size() == most) age();
        present_.insert(task);
    }
    [[nodiscard]] bool contains(const TaskId& task) const {
        return present_.contains(task) || previous_.contains(task);
    }
    /// A generation ends.
    void age() {
        previous_ = std::move(present_);
        present_ = {};
    }

  private:
    std::unordered_set<TaskId> present_, previous_;
};

} // namespace affinityd::state

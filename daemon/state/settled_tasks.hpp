// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"

#include <cstddef>
#include <unordered_set>
#include <utility>

namespace affinityd::state {

/// Tasks that lately had a record and live on without one: the mask that such a task has now is its own, even
/// if it equals one that its creator had from us. They are kept for as long as former masks are.
class SettledTasks {
  public:
    static constexpr std::size_t most = 16384; ///< of a generation; then the older ones make room

    void add(const TaskId& task) {
        if (young_.size() >= most) age();
        young_.insert(task);
    }
    [[nodiscard]] bool contains(const TaskId& task) const {
        return young_.contains(task) || old_.contains(task);
    }
    /// A generation ends.
    void age() { old_ = std::exchange(young_, {}); }

  private:
    std::unordered_set<TaskId> young_, old_;
};

} // namespace affinityd::state

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "app/task_table.hpp"

#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// Sends the memory of processes under `memory: follow` to the NUMA nodes that they now run on.
class MemoryFollower {
  public:
    explicit MemoryFollower(Shared& shared) : shared_(shared) {}

    struct State {
        std::vector<unsigned> nodes; ///< where its memory was last sent
        std::string text;            ///< the result, for people
    };
    /// The process's threads are in place.
    void follow(const KnownProcess& process);
    void forget(const TaskId& process) { states_.erase(process); }
    /// Takes up what has been moved since the last call.
    void take_moved();
    [[nodiscard]] const State* find(const TaskId& process) const; ///< nullptr: it was not asked for

  private:
    Shared& shared_;
    std::unordered_map<TaskId, State> states_;
};

} // namespace affinityd::app

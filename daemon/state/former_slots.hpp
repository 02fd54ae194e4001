// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "planner/place.hpp"

#include <chrono>
#include <cstddef>
#include <string>

namespace affinityd::state {

/// The lanes that tasks have, for the next daemon: connections that are open stay with their worker, and
/// their packets go on to arrive for the lane that it had. The journal does not tell that: a task may have
/// more CPUs than its lane's, and when a daemon is stopped, all is put back. In a file of the runtime folder,
/// a line for each task.
class FormerSlots {
  public:
    using Clock = std::chrono::steady_clock;
    using Slots = planner::FormerSlots;
    static constexpr std::size_t most = 4096;         ///< tasks
    static constexpr std::chrono::minutes lasting{2}; ///< what is dealt anew later is for other reasons

    FormerSlots() = default;
    /// Takes what an earlier daemon has left there. Without a file, or with one of an earlier boot, there are
    /// none; lines that are torn count for nothing. "": nothing is read or written.
    explicit FormerSlots(std::string path);
    [[nodiscard]] bool is_kept() const { return !path_.empty(); }
    /// For the next daemon; nothing is written if they are as before, and the file is there. An Error: the
    /// file has what it had.
    [[nodiscard]] Result<void> keep(Slots slots);

    /// Those of an earlier daemon. Null: there are none, or not any more.
    [[nodiscard]] const Slots* find(Clock::time_point now) const { return now < until_ ? &slots_ : nullptr; }

  private:
    std::string path_;
    Slots slots_, kept_;
    Clock::time_point until_ = Clock::time_point::min();
};

} // namespace affinityd::state

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"

#include <chrono>
#include <functional>
#include <unordered_map>

namespace affinityd::app {

/// Processes that were read and take no connections: thousands, of a server with a process for each
/// connection, which are read seldom; and a server's master, which has the listeners open for its workers.
class IdleProcesses {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr unsigned enough_reads = 3;
    static constexpr std::chrono::seconds pause{60};

    /// It was read, and takes connections or not. True: takes_none() says otherwise than before.
    [[nodiscard]] bool see(const TaskId& process, bool takes, Clock::time_point now);
    /// `others_do`: each listener of its policy has its worker, and is steered. True: takes_none() says so of
    /// more than before.
    [[nodiscard]] bool note_workers(const std::function<bool(const TaskId&)>& others_do);
    /// It need not be read again yet.
    [[nodiscard]] bool rests(const TaskId& process, Clock::time_point now) const;
    /// Others take the connections of its listeners. That is believed as soon as they do, so that lanes are
    /// given out anew before there are many connections, and while workers come and go, until it takes some
    /// itself.
    [[nodiscard]] bool takes_none(const TaskId& process) const;
    void keep_only(const std::function<bool(const TaskId&)>& is_there);

  private:
    struct Idle {
        unsigned reads = 0;
        Clock::time_point again{};
        bool has_workers = false;
    };
    std::unordered_map<TaskId, Idle> seen_;
};

} // namespace affinityd::app

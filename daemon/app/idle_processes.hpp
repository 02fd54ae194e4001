// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/unattended_listeners.hpp"
#include "base/task_id.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// Processes that were read and take no connections: thousands, of a server with a process for each
/// connection, which are read seldom; and a server's master, which has the listeners open for its workers.
class IdleProcesses {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr unsigned enough_reads = 3;
    static constexpr std::chrono::seconds pause{60};

    using Inodes = std::vector<std::uint64_t>;
    /// It was read, and takes connections or not. `held`: inodes of listeners that it has open; `are_all`: it
    /// has no others. True: takes_none() says otherwise than before.
    [[nodiscard]] bool see(const TaskId& process, bool takes, Clock::time_point now, Inodes held = {},
                           bool are_all = true);
    /// Hands on who takes no connections, and the listeners that it holds all the same, as when it was read
    /// last.
    void for_each(const std::function<void(const TaskId&, const Inodes&)>& take) const;
    /// `others_do`: each listener of its policy has its worker, and is steered. True: takes_none() says so of
    /// more than before.
    [[nodiscard]] bool note_workers(const std::function<bool(const TaskId&)>& others_do);
    /// It need not be read again yet: it may wait for none of those that nobody is seen to take from.
    [[nodiscard]] bool rests(const TaskId& process, Clock::time_point now,
                             const UnattendedListeners& unattended) const;
    /// It was read often enough, and has no TCP listener open.
    [[nodiscard]] bool has_no_listener(const TaskId& process) const;
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
        Inodes held{};
        bool are_all = true;
    };
    std::unordered_map<TaskId, Idle> seen_;
};

} // namespace affinityd::app

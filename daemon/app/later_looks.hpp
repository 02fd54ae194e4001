// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <unordered_map>

#include <sys/types.h>

namespace affinityd::app {

/// Which processes are to be looked at again although no event will name them. What a process writes over its
/// arguments, or that it listens, the kernel tells nobody: such a process is looked at ten times in the
/// five seconds after it was born, ran a program or changed its name or user. A new one is looked at once it
/// has settled. Bounded: 4,096 processes of a user wait, 16,384 in all; passes find those that are left out.
class LaterLooks {
  public:
    using Clock = std::chrono::steady_clock;
    struct Due {
        int pid = 0;
        uid_t user = 0;
    };

    /// It is to be looked at several times from now on, at growing distances. Begins anew if it is already.
    void begin_series(int pid, uid_t user, Clock::time_point now);
    void end_series(int pid);
    /// It is to be looked at then, once. Another time that was said before holds no more.
    void look_at(int pid, uid_t user, Clock::time_point when);
    /// It has ended.
    void forget(int pid);
    /// The next one whose time has come; no value: nobody's has.
    [[nodiscard]] std::optional<Due> take_due(Clock::time_point now);
    /// max(): never.
    [[nodiscard]] Clock::time_point next_due() const { return due_.empty() ? never : due_.begin()->first; }
    [[nodiscard]] std::size_t size() const { return looks_.size(); }

  private:
    static constexpr Clock::time_point never = Clock::time_point::max();
    struct Look {
        uid_t user = 0;
        Clock::time_point begun{};        ///< of the series
        std::size_t next = 0;             ///< look of the series
        Clock::time_point series = never; ///< when that is
        Clock::time_point once = never;
        std::multimap<Clock::time_point, int>::iterator place{}; ///< in due_
    };
    using Looks = std::unordered_map<int, Look>;
    [[nodiscard]] Look* find_or_add(int pid, uid_t user);
    void place(int pid, Look& look);

    Looks looks_;
    std::multimap<Clock::time_point, int> due_;
    std::unordered_map<uid_t, std::size_t> of_users_;
};

} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "status/status.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace affinityd::app {

/// Which processes call for attention all the time, so that they are looked at with pauses: 0.1 s, then
/// twice as long each time, up to 2 s. A process floods with the 1,000th event in a second, or when looking
/// at it has taken a tenth of a second of one; it does no more after a second of quiet. Bounded in memory.
class Floods {
  public:
    using Clock = std::chrono::steady_clock;

    /// An event of a process of this user.
    void count(int pid, uid_t user, Clock::time_point now);
    /// True: it is not among those that made events lately, and its first event need not be counted. Most
    /// processes make one only, and a record for each would be memory that is in no cache.
    [[nodiscard]] bool note_newcomer(int pid);
    /// Looking at it took so long. Whoever takes a millisecond is known from then on.
    void spent(int pid, Clock::duration time, Clock::time_point now) {
        if (time >= long_look || !records_.empty()) charge(pid, time, now);
    }
    /// When it may be looked at: never later than two seconds from now; `now` unless it floods.
    [[nodiscard]] Clock::time_point next_look(int pid, Clock::time_point now);
    /// It is looked at now.
    void looked(int pid, Clock::time_point now);
    /// It has ended.
    void forget(int pid) { records_.erase(pid); }

    /// The kernel dropped events: those that flood are not listened to for a while.
    void overflowed(Clock::time_point now);
    /// The processes whose events are not worth listening to: those that flood while the kernel drops events,
    /// or that make more than 5,000 a second. Each for ten seconds, longer each time. Ascending, at most 16.
    [[nodiscard]] std::vector<int> muted(Clock::time_point now);
    [[nodiscard]] bool mutes() const { return !muted_.empty(); }  ///< perhaps; false: nobody is muted
    [[nodiscard]] bool empty() const { return records_.empty(); } ///< nobody floods, or may begin to
    [[nodiscard]] bool is_muted(int pid, Clock::time_point now) const;
    /// When muted() may have another answer because of time alone; max(): never.
    [[nodiscard]] Clock::time_point next_change() const;

    /// Those that flood now, the worst first, at most 64.
    [[nodiscard]] std::vector<status::FloodStatus> list(Clock::time_point now) const;

  private:
    struct Record {
        uid_t user = 0;
        Clock::time_point second{}; ///< when the present one began
        std::uint64_t events = 0;   ///< in it
        Clock::duration cost{};     ///< in it
        std::uint64_t a_second = 0; ///< events in the worst second of the flood
        Clock::duration pause{};    ///< between looks; 0: it does not flood
        Clock::time_point looked{}; ///< last
        Clock::time_point muted_until{};
        Clock::duration muted_for{}; ///< the last time
        [[nodiscard]] bool floods() const { return pause > Clock::duration::zero(); }
        [[nodiscard]] bool is_muted(Clock::time_point now) const { return now < muted_until; }
    };
    static constexpr std::chrono::milliseconds long_look{1};
    void charge(int pid, Clock::duration time, Clock::time_point now);
    static void begin_second(Record& record, Clock::time_point now);
    void judge(int pid, Record& record, Clock::time_point now);
    void mute(int pid, Record& record, Clock::time_point now);
    [[nodiscard]] bool make_room(Clock::time_point now);

    std::unordered_map<int, Record> records_;
    std::array<int, 32> newcomers_{}; ///< the last ones
    std::size_t next_newcomer_ = 0;   ///< place of the oldest
    Clock::time_point swept_{};       ///< when it was last made room
    std::vector<int> muted_;          ///< and perhaps some whose time is over
};

} // namespace affinityd::app

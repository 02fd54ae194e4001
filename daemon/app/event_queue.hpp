// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/floods.hpp"
#include "app/later_looks.hpp"
#include "host/proc_event.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace affinityd::app {

/// One thing to do because of process events.
struct TaskNews {
    enum class Kind {
        process, ///< the whole process is to be looked at
        born,    ///< a thread
        renamed, ///< a thread
        gone     ///< a thread; the main thread's number: perhaps the process
    };
    Kind kind = Kind::process;
    int tid = 0;
    std::array<char, 16> name{}; ///< the new one; any bytes, NUL-terminated unless full
};

/// What is to be done about one process, in this order.
struct ProcessNews {
    int pid = 0;
    bool is_whole = false; ///< the whole process is to be looked at first; most make no other news
    std::vector<TaskNews> news{};
    std::optional<int> creator; ///< the process that forked it, if that is why it is looked at
    bool has_changed = false;   ///< some event said so; otherwise its time to be looked at again has come
    bool is_executed = false;   ///< it runs another program
};

/// Process events that wait to be handled. Those of one process are one entry, however many they are; users
/// have their turns one after the other, so that nobody waits behind another user's many processes; who
/// floods is looked at with pauses. Bounded: 4,096 processes of a user wait, 16,384 in all.
class EventQueue {
  public:
    using Clock = Floods::Clock;

    struct Asked {
        std::function<bool(int pid)>
            is_known; ///< a process under policy: births and ends of its threads matter
        /// Children matter, whoever made them: some policy asks for what they may do without an event.
        bool all_children = false;
        /// Whose process it is; asked once for each that waits beside others. `crowded`: many of that user
        /// wait.
        std::function<uid_t(int pid, const std::function<bool(uid_t)>& crowded)> owner;
    };
    void add(const host::ProcEvent& event, const Asked& asked, Clock::time_point now);
    /// The next process whose turn it is; no value: nobody's is.
    [[nodiscard]] std::optional<ProcessNews> next(Clock::time_point now);
    [[nodiscard]] bool empty() const {
        return turns_.empty() && !first_;
    } ///< but for those that wait for the end of a pause
    /// When next() may have another answer without another event; max(): never.
    [[nodiscard]] Clock::time_point next_due() const;
    /// True once after events had to be left out: everything is to be looked at.
    [[nodiscard]] bool take_left_out() { return std::exchange(left_out_, false); }
    [[nodiscard]] Floods& floods() { return floods_; }
    [[nodiscard]] const Floods& floods() const { return floods_; }
    [[nodiscard]] LaterLooks& later() { return later_; }
    /// A process or thread was looked at because of an event.
    void count_handled() { ++handled_; }
    [[nodiscard]] std::uint64_t handled() const { return handled_; }
    /// The kernel tells of no processes, and why; "": it does.
    void set_absence(std::string why) { absence_ = std::move(why); }
    [[nodiscard]] const std::string& absence() const { return absence_; }

  private:
    struct Entry {
        uid_t user = 0;
        ProcessNews news;
        bool is_held = false; ///< until its pause is over
    };
    ProcessNews* find(int pid);
    ProcessNews* begin(const host::ProcEvent& event, const Asked& asked, Clock::time_point now);
    ProcessNews* count(const host::ProcEvent& event, const Asked& asked, Clock::time_point now);
    ProcessNews* entry_of(int pid, uid_t user, Clock::time_point now);
    void join_others(const Asked& asked);
    void end(int pid);
    [[nodiscard]] uid_t owner_of(int pid, const Asked& asked) const;
    [[nodiscard]] std::size_t waiting_of(uid_t user) const;
    void admit(int pid, Entry& entry, Clock::time_point now);
    void look_again(int pid, uid_t user, Clock::time_point now);
    void queue(int pid, uid_t user);
    [[nodiscard]] std::optional<ProcessNews> take_turn(uid_t& user);
    void release_due(Clock::time_point now);

    std::unordered_map<int, Entry> entries_;
    /// Waits alone, after one event, and is not in the table: it takes nobody's turn, whosever it is.
    std::optional<ProcessNews> first_;
    std::unordered_map<uid_t, std::deque<int>> waiting_;
    std::deque<uid_t> turns_; ///< of users for whom somebody waits
    std::multimap<Clock::time_point, int> held_;
    bool left_out_ = false;
    std::uint64_t handled_ = 0;
    std::string absence_;
    Floods floods_;
    LaterLooks later_;
};

} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/budget.hpp"
#include "app/later_looks.hpp"
#include "host/proc_connector.hpp"
#include "status/status.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
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
    uid_t person = 0;      ///< pays for it
    bool is_whole = false; ///< the whole process is to be looked at first; most make no other news
    std::vector<TaskNews> news{};
    std::optional<int> creator; ///< the process that forked it, if that is why it is looked at
    bool has_changed = false;   ///< some event said so; otherwise its time to be looked at again has come
    bool is_executed = false;   ///< it runs another program
};

/// Process events that wait to be handled, in the order in which they came; those of one process are one
/// entry. Processes of a person whose budget is spent are left to the next pass, with all that happens to
/// them until then. Bounded: 16,384 processes wait, 16,384 are left.
class EventQueue {
  public:
    using Clock = Budget::Clock;

    struct Asked {
        std::function<bool(int pid)>
            is_known; ///< a process under policy: births and ends of its threads matter
        /// Children matter, whoever made them: some policy asks for what they may do without an event.
        bool all_children = false;
        std::function<uid_t(int pid)> person; ///< pays for the process
    };
    void add(const host::ProcEvent& event, const Asked& asked, Clock::time_point now);
    /// The next process; no value: none waits.
    [[nodiscard]] std::optional<ProcessNews> next(Clock::time_point now);
    [[nodiscard]] bool empty() const { return waiting_.empty(); }
    /// When next() may have another answer without another event; max(): never.
    [[nodiscard]] Clock::time_point next_due() const { return later_.next_due(); }
    /// The process is left to the next pass.
    void leave(int pid, uid_t person, Clock::time_point now);
    /// True once after processes were left: a pass is to come.
    [[nodiscard]] bool take_left_out() { return std::exchange(left_out_, false); }
    /// A pass begins, which looks at everything.
    void begin_pass();
    /// Processes left to the pass that make more events than are worth listening to. Ascending, at most 16.
    [[nodiscard]] const std::vector<int>& muted() const { return muted_; }
    /// The persons whose processes were left to passes in the last seconds, each with the process that made
    /// most events.
    [[nodiscard]] std::vector<status::FloodStatus> floods(Clock::time_point now) const;
    [[nodiscard]] Budget& budget() { return budget_; }
    [[nodiscard]] LaterLooks& later() { return later_; }
    /// A process or thread was looked at because of an event.
    void count_handled() { ++handled_; }
    [[nodiscard]] std::uint64_t handled() const { return handled_; }
    /// The kernel tells of no processes, and why; "": it does.
    void set_absence(std::string why) { absence_ = std::move(why); }
    [[nodiscard]] const std::string& absence() const { return absence_; }

  private:
    struct Left {
        uid_t person = 0;
        std::uint64_t events = 0;
    };
    struct Flood {
        Clock::time_point begun{}, last{};
        std::uint64_t events = 0;
        int pid = 0;
        std::uint64_t most = 0; ///< events of that process between two passes
    };
    ProcessNews* find_or_add(int pid, uid_t person, Clock::time_point now);
    [[nodiscard]] bool goes_on_leaving(const host::ProcEvent& event, Clock::time_point now);
    void count_left(int pid, Left& left, Clock::time_point now);
    void release_due(Clock::time_point now);

    Budget budget_;
    std::unordered_map<int, ProcessNews> entries_;
    std::deque<int> waiting_;
    std::unordered_map<int, Left> left_;
    std::unordered_map<uid_t, Flood> floods_;
    std::vector<int> muted_;
    bool left_out_ = false;
    std::uint64_t handled_ = 0;
    std::string absence_;
    LaterLooks later_;
};

} // namespace affinityd::app

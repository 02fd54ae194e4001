// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/task_table.hpp"
#include "host/proc_connector.hpp"
#include "inventory/facts.hpp"
#include "status/status.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace affinityd::core {

/// The time of the loop that each person's programs may take for themselves: events, scans, joins and
/// questions on the bus. A person is a user with all subordinate ids. Each has a fifth of a CPU, and 40 ms at
/// once, so that another person's program never waits for longer. Work of a person whose budget is spent
/// waits for the next pass; requests are refused. Bounded to 4,096 persons.
class Budget {
  public:
    using Clock = std::chrono::steady_clock;

    /// True: nothing more is done for this person now.
    [[nodiscard]] bool is_spent(uid_t person, Clock::time_point now) const {
        return debt(person, now) > at_once;
    }
    /// True: half of what may be taken at once has been taken.
    [[nodiscard]] bool is_low(uid_t person, Clock::time_point now) const {
        return debt(person, now) > at_once / 2;
    }
    /// True: no person has taken much lately, so that it hardly matters who pays.
    [[nodiscard]] bool is_calm(Clock::time_point now) const { return latest_ - now <= at_once / 2; }
    /// Takes the CPU time that work took.
    void charge(uid_t person, Clock::duration time, Clock::time_point now) {
        if (paid_.size() >= most_persons && !paid_.contains(person))
            std::erase_if(paid_, [&](const auto& entry) { return entry.second <= now; });
        if (paid_.size() >= most_persons && !paid_.contains(person)) return;
        auto& paid = paid_[person];
        paid = std::min(std::max(paid, now) + share * time, now + longest_debt);
        latest_ = std::max(latest_, paid);
    }

  private:
    static constexpr int share = 5; // one in so many
    static constexpr Clock::duration at_once = share * std::chrono::milliseconds(40);
    static constexpr Clock::duration longest_debt = std::chrono::seconds(2);
    static constexpr std::size_t most_persons = 4096;

    [[nodiscard]] Clock::duration debt(uid_t person, Clock::time_point now) const {
        const auto found = paid_.find(person);
        return found == paid_.end() ? Clock::duration::zero() : found->second - now;
    }

    std::unordered_map<uid_t, Clock::time_point> paid_; ///< when all that was taken will have been earned
    Clock::time_point latest_{};                        ///< of these
};

/// Processes that are to be looked at again although no event will name them. The kernel reports neither that
/// one writes over its arguments nor that it listens: such a process is looked at ten times in the
/// five seconds after it was born, ran a program or changed its name or user. A new one is looked at once it
/// has settled. Bounded: 16,384 processes wait; passes find those that are left out.
class LaterLooks {
  public:
    using Clock = std::chrono::steady_clock;

    /// Plans several looks at a process, at growing distances, in place of a series under way.
    void begin_series(int pid, Clock::time_point now);
    void end_series(int pid);
    /// Plans one look, in place of one that was planned before.
    void look_at(int pid, Clock::time_point when);
    /// The process has ended.
    void drop(int pid);
    /// The next one whose time has come; no value: none.
    [[nodiscard]] std::optional<int> take_due(Clock::time_point now);
    /// max(): never.
    [[nodiscard]] Clock::time_point next_due() const { return due_.empty() ? never : due_.begin()->first; }

  private:
    static constexpr Clock::time_point never = Clock::time_point::max();
    struct Look {
        Clock::time_point begun{};        ///< of the series
        std::size_t next = 0;             ///< look of the series
        Clock::time_point series = never; ///< when that is
        Clock::time_point once = never;
        Clock::time_point due = never; ///< in due_
    };
    [[nodiscard]] Look* find_or_add(int pid);
    void place(int pid, Look& look);

    std::unordered_map<int, Look> looks_;
    std::set<std::pair<Clock::time_point, int>> due_;
};

/// The last that is known of a thread from process events.
struct ThreadNews {
    enum class Kind { born, renamed, gone };
    Kind kind = Kind::born;
    int tid = 0;
    std::array<char, 16> name{}; ///< the new one; any bytes, NUL-terminated unless full
};

/// Things to do about one process, in this order.
struct ProcessNews {
    int pid = 0;
    std::optional<uid_t> person;       ///< pays for it; no value: not asked for
    unsigned events = 0;               ///< taken from the kernel for it
    std::chrono::nanoseconds first{0}; ///< of them: when it happened, by the monotonic clock
    bool has_lost_main = false;        ///< the main thread has ended, and perhaps the process
    bool is_whole = false;             ///< the process is to be looked at with all its threads
    std::vector<ThreadNews> threads{};
    std::optional<int> creator{}; ///< the process that forked it, if that is why it is looked at
    bool has_changed = false;     ///< some event said so; otherwise its time to be looked at again has come
    bool is_executed = false;     ///< it runs another program
};

/// Process events that wait to be handled, in the order in which they came; those of one process are one
/// entry. Processes of a person whose budget is spent are left to the next pass, with all that happens to
/// them until then. Bounded: 16,384 processes wait, 16,384 are left.
class EventQueue {
  public:
    using Clock = Budget::Clock;

    /// References must outlive it.
    EventQueue(inventory::FactSources& sources, const TaskTable& tasks) : sources_(sources), tasks_(tasks) {}

    /// `all_children` matter, whichever process made them: some policy asks for what they may do without an
    /// event.
    void add(const host::ProcEvent& event, bool all_children, Clock::time_point now);
    /// The next process; no value: none waits.
    [[nodiscard]] std::optional<ProcessNews> next(Clock::time_point now);
    [[nodiscard]] bool empty() const { return waiting_.empty(); }
    /// When next() may have another answer without another event; max(): never.
    [[nodiscard]] Clock::time_point next_due() const { return later_.next_due(); }
    /// The process is left to the next pass.
    void leave(int pid, uid_t person, Clock::time_point now);
    /// Work for the process took that time, its events aside.
    void charge(const ProcessNews& process, Clock::duration time, Clock::time_point now);
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
    /// The time from an event to the end of the placing that followed it.
    [[nodiscard]] status::Latencies& latencies() { return latencies_; }
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
    [[nodiscard]] uid_t person(int pid, Clock::time_point now);
    [[nodiscard]] bool is_known(int pid) const { return tasks_.find(pid) != nullptr; }
    ProcessNews* find_or_add(int pid, Clock::time_point now);
    [[nodiscard]] bool goes_on_leaving(const host::ProcEvent& event, Clock::time_point now);
    void count_left(int pid, Left& left, Clock::time_point now);
    void release_due(Clock::time_point now);

    inventory::FactSources& sources_;
    const TaskTable& tasks_;
    Budget budget_;
    unsigned unpaid_ = 0; ///< processes that no person was asked for
    std::unordered_map<int, ProcessNews> entries_;
    std::deque<int> waiting_;
    std::unordered_map<int, Left> left_;
    std::unordered_map<uid_t, Flood> floods_;
    std::vector<int> muted_;
    bool left_out_ = false;
    std::uint64_t handled_ = 0;
    status::Latencies latencies_;
    std::string absence_;
    LaterLooks later_;
};

} // namespace affinityd::core

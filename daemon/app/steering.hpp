// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "app/task_steering.hpp"
#include "host/fd.hpp"
#include "host/root.hpp"
#include "steer/lanes.hpp"
#include "steer/reads.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::app {

/// Brings packets and those who read them together: the kernel gives new connections to the listener of the
/// worker on whose lane they arrive, and tasks change over to the lane where their packets arrive. It counts
/// who reads where meanwhile, by the same programs, and only while a policy asks for it.
class Steering {
  public:
    using Clock = std::chrono::steady_clock;
    /// References must outlive it.
    struct Parts {
        const host::Root& root;
        const Current& current;
        const TaskTable& tasks;
        planner::Assignments& assignments;
        const Releases& releases;
        Log& log;
        bool acts = false;                       ///< false: dry run
        std::function<void(int pid)> look_again; ///< has a process placed where it belongs now
        std::function<void(const locality::ReadCounts&)> counted; ///< is told of all counts
        std::function<void()> has_work;                           ///< step() has something to do
        std::function<void()> wants_pass;                         ///< can_steer() is another
    };
    explicit Steering(const Parts& parts);

    /// A process under policy was placed.
    void observe(const KnownProcess& process);
    /// When look() is to be called; max(): never.
    [[nodiscard]] Clock::time_point next_look() const { return next_look_; }
    /// Takes what was counted, and puts listeners where their workers are now.
    void look();
    /// Readable when a listener begins to listen on a port that is steered: take_events() is to be called.
    [[nodiscard]] int fd() const { return events_.get(); }
    /// Has look() come soon, but not for each event of a program that opens and closes all the time.
    void take_events();
    /// Works until `out_of_time` says so. True: there is nothing left to do.
    bool step(const OutOfTime& out_of_time) { return tasks_.step(out_of_time); }
    [[nodiscard]] bool has_news() const { return tasks_.has_news(); } ///< for step()
    /// At the end of a pass: forgets tasks that have ended.
    void end_pass();
    /// It is where its packets arrive, and they would not follow it.
    [[nodiscard]] bool is_settled(const TaskId& task) const;
    /// A policy's listeners, steered and left; nullptr: it does not steer, or nothing is known yet.
    [[nodiscard]] const planner::ListenerPlan* plan_of(std::string_view policy) const;
    /// It takes no connections, while others of its policy take theirs: a server's master.
    [[nodiscard]] bool takes_none(const KnownProcess& process) const;
    void explain(const TaskId& process, status::ProcessExplanation& into) const;
    [[nodiscard]] const TaskSteering& tasks() const { return tasks_; }
    /// False: BPF was refused.
    [[nodiscard]] bool can_steer() const { return why_not_.empty(); }
    /// For `status`: why nothing is counted or steered.
    [[nodiscard]] std::vector<planner::Problem> problems() const;

  private:
    /// A listener, as it was seen last.
    struct Seen {
        std::string policy;
        steer::Address at;
        TaskId worker{}; ///< thread or process that takes its connections
        int process = 0;
        std::optional<unsigned> cpu; ///< where its connections arrive; no value: it is left alone
        planner::NotSteered why = planner::NotSteered::not_seen;
    };
    struct Taken {
        std::uint64_t before = 0; ///< connections, at the begin of this minute
        std::uint64_t now = 0;
        double pass_on = 0; ///< 0..1: what exceeds twice its share
    };
    /// A network namespace with processes whose policies steer.
    struct Space {
        std::optional<steer::Lanes> lanes;
        std::string why_not; ///< ""
        Clock::time_point retry{};
        struct Scans {
            std::size_t number = 0;    ///< how often its descriptors were gone through
            std::size_t datagrams = 0; ///< sockets of UDP that it has
        };
        std::map<TaskId, Scans> scans;   ///< of processes
        bool is_full = false;            ///< it has more listeners than there is room for
        std::set<std::uint16_t> listed;  ///< ports of which others' listeners are known
        std::set<steer::Address> others; ///< these
        std::size_t turn = 0;            ///< of the process whose descriptors are gone through next
        std::vector<steer::Service> in_force;
        std::map<std::uint64_t, int> refused; ///< errno values, by cookie
        std::map<std::uint64_t, Seen> seen;   ///< by cookie
        std::map<std::uint64_t, Taken> taken;
        Clock::time_point minute{};
    };
    using Takers = std::multimap<std::uint64_t, steer::Taker>;

    [[nodiscard]] bool steers(const policy::Policy& policy) const;
    [[nodiscard]] bool wants_counts() const;
    [[nodiscard]] bool begin_counting();
    void end_all();
    void forget_kept();
    void follow(std::uint64_t name, Space& space, const std::vector<const KnownProcess*>& processes,
                const Takers& takers, bool is_paused);
    [[nodiscard]] Seen judge(const steer::Listener& listener, const Takers& takers) const;
    void weigh(Space& space, const Takers& takers);
    [[nodiscard]] std::optional<std::uint64_t> list_others(int process, Space& space,
                                                           const std::set<std::uint16_t>& ports) const;
    std::vector<steer::Service> services(int process, Space& space,
                                         const std::vector<steer::Listener>& listeners);
    [[nodiscard]] bool spread_workers(const Space& space);
    void sum_up();

    Parts parts_;
    TaskSteering tasks_;
    host::Fd events_;
    steer::Kept kept_;
    std::optional<steer::Reads> reads_;
    std::string why_not_; ///< nothing is counted; "": it is, or need not be
    Clock::time_point next_look_{}, last_look_{};
    bool is_paused_ = false;                   ///< the kernel has paused a port
    std::size_t looks_ = 0;                    ///< after processes were placed, that are still to come
    std::map<std::uint64_t, Space> spaces_;    ///< by inode
    std::map<TaskId, std::uint64_t> space_of_; ///< of processes whose policies steer
    std::map<std::string, planner::ListenerPlan, std::less<>> plans_;
    std::set<int> takers_; ///< processes that took connections
};

} // namespace affinityd::app

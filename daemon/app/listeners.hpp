// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/idle_processes.hpp"
#include "app/listener_records.hpp"
#include "app/log.hpp"
#include "app/lost_records.hpp"
#include "app/placed.hpp"
#include "app/releases.hpp"
#include "app/steer_guard.hpp"
#include "app/task_table.hpp"
#include "app/world.hpp"
#include "enforcer/executor.hpp"
#include "inventory/accept_list.hpp"
#include "planner/steering.hpp"
#include "state/journal.hpp"
#include "status/status.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// The way of listeners, for policies with `steer`.
///
/// observe: AcceptList reads on a thread of its own which process takes connections from which listener;
/// asked for when processes were placed, since servers open their listeners and begin to wait a moment after
/// they were started; plan: planner::plan_listeners(); apply: the executor; status: what became of each
/// listener.
class Listeners {
  public:
    using Clock = std::chrono::steady_clock;

    /// References must outlive it.
    struct Parts {
        const host::Root& root;
        const Current& current;
        const TaskTable& tasks;
        const planner::Assignments& assignments;
        state::Journal& journal;
        enforcer::Enforcer& enforcer;
        enforcer::Executor& executor;
        LostRecords& lost;
        const Releases& releases;
        Placed& placed;
        Log& log;
    };
    explicit Listeners(const Parts& parts);

    /// A process under policy was placed.
    void observe(const KnownProcess& process);
    /// When look() is to be called; max(): never.
    [[nodiscard]] Clock::time_point next_look() const;
    /// Asks for the listeners of all processes whose policies steer, of very many for some.
    void look();
    /// Readable when they have come; -1: they never do.
    [[nodiscard]] int fd() const { return list_ ? list_->fd() : -1; }
    enum class News : std::uint8_t {
        none,
        plan, ///< there is something to do, by ListenerRounds
        usage ///< that, and takes_none() says otherwise than before: lanes may be others for it
    };
    /// They have come: plans what is to be done.
    [[nodiscard]] News take();
    /// Workers were moved after that: their listeners get the CPUs of their lanes now.
    void follow_workers();

    /// A round over all listeners begins, after a plan, in a pass, or as policies were released: plans,
    /// targets and withdrawals of policies that do not steer any more are forgotten.
    void begin_anew();
    /// The round's next target; nullptr: there are no more.
    [[nodiscard]] const planner::ListenerTarget* next_target();
    void put_right(const planner::ListenerTarget& target);
    /// Listeners with records that have no target.
    [[nodiscard]] ListenerRecords::Sorted without_target();
    [[nodiscard]] ListenerRecords& records() { return records_; }
    /// All of them were looked at.
    void end_round();

    /// What became of a policy's listeners; nullptr: it does not steer, or they were not read yet.
    [[nodiscard]] const planner::ListenerPlan* plan_of(std::string_view policy) const;
    /// It takes no connections, while others of its policy take theirs each from a listener of its own: a
    /// server's master, which has the listeners open for its workers.
    [[nodiscard]] bool takes_none(const KnownProcess& process) const;
    /// A worker to which a CPU's connections come, and to no other of its address: those that it has would
    /// be read elsewhere than they arrive if it moved.
    [[nodiscard]] bool has_own_arrivals(const TaskId& worker) const;
    /// What became of those of one process.
    void explain(const TaskId& process, status::ProcessExplanation& into) const;

  private:
    using Setting = planner::Setting;
    static constexpr std::array<std::chrono::milliseconds, 3> distances{
        std::chrono::milliseconds(50), std::chrono::milliseconds(450), std::chrono::milliseconds(2500)};
    [[nodiscard]] bool steers(const policy::Policy& policy) const;
    [[nodiscard]] bool is_wanted(const planner::ListenerTarget& target) const;
    [[nodiscard]] std::expected<unsigned, planner::NotSteered> arrival_cpu(const TaskId& process,
                                                                           int thread) const;
    [[nodiscard]] std::vector<TaskId> processes() const;
    [[nodiscard]] bool note_idle(const std::vector<inventory::AcceptSockets>& found);
    void plan(const std::string& policy, const std::vector<const inventory::AcceptSockets*>& found);
    void keep_avoided(const std::vector<inventory::AcceptSockets>& found,
                      const std::vector<planner::ListenerTarget>& before);
    void guard(const std::string& policy, planner::AcceptProcesses found, planner::ListenerPlan& plan);

    Parts parts_;
    std::unique_ptr<inventory::AcceptList> list_; ///< null: dry run, or a recording
    std::size_t looks_ = distances.size();        ///< of the series, that are over
    Clock::time_point next_look_ = Clock::time_point::max();
    IdleProcesses idle_;
    UnattendedListeners unattended_;
    std::map<std::string, planner::ListenerPlan, std::less<>> plans_; ///< by policy
    std::vector<planner::ListenerTarget> targets_;                    ///< of all plans
    std::size_t next_target_ = 0;
    ListenerRecords records_;
    SteerGuard guard_;
};

} // namespace affinityd::app

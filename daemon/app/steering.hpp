// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/task_steering.hpp"

#include <functional>
#include <string_view>

namespace affinityd::app {

/// What brings packets and those who read them together: tasks change over to the lane where their packets
/// arrive.
class Steering {
  public:
    /// References must outlive it.
    struct Parts {
        const Current& current;
        const TaskTable& tasks;
        planner::Assignments& assignments;
        const Releases& releases;
        std::function<void(int pid)> look_again; ///< has a process placed where it belongs now
        std::function<void(const locality::ReadCounts&)> counted; ///< is told of all counts
        std::function<void()> has_work;                           ///< step() has something to do
    };
    explicit Steering(const Parts& parts);

    /// A process under policy was placed.
    void observe(const KnownProcess& process) { tasks_.observe(process); }
    /// Counts of reads have come.
    void note(const locality::ReadCounts& found);
    /// Works until `out_of_time` says so. True: there is nothing left to do.
    bool step(const OutOfTime& out_of_time) { return tasks_.step(out_of_time); }
    [[nodiscard]] bool has_news() const { return tasks_.has_news(); } ///< for step()
    /// At the end of a pass: forgets tasks that have ended.
    void end_pass() { tasks_.end_pass(); }
    /// It is where its packets arrive, and they would not follow it.
    [[nodiscard]] bool is_settled(const TaskId& task) const { return tasks_.is_settled(task); }
    /// What became of a policy's listeners; nullptr: it does not steer, or nothing is known yet.
    [[nodiscard]] const planner::ListenerPlan* plan_of(std::string_view policy) const;
    /// It takes no connections, while others of its policy take theirs: a server's master.
    [[nodiscard]] bool takes_none(const KnownProcess& process) const;
    void explain(const TaskId& process, status::ProcessExplanation& into) const {
        tasks_.explain(process, into);
    }
    [[nodiscard]] const TaskSteering& tasks() const { return tasks_; }

  private:
    Parts parts_;
    TaskSteering tasks_;
};

} // namespace affinityd::app

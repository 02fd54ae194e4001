// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/listener_rounds.hpp"
#include "app/listeners.hpp"
#include "app/sample_looks.hpp"
#include "app/task_steering.hpp"

#include <functional>

namespace affinityd::app {

/// What brings packets and those who read them together: listeners are told their CPU, and tasks change over
/// to the lane where their packets arrive, as samples of their connections say.
class Steering {
  public:
    /// References must outlive it.
    struct Parts {
        Listeners::Parts listeners;
        planner::Assignments& assignments;       ///< those of listeners, which tasks change
        std::function<void(int pid)> look_again; ///< has a process placed where it belongs now
        std::function<void(const locality::ReadCounts&)> sampled; ///< is told of all samples
        std::function<void()> has_work;                           ///< step() has something to do
    };
    explicit Steering(const Parts& parts);

    /// A process under policy was placed.
    void observe(const KnownProcess& process);
    /// What was found of listeners has come: also has workers change over to lanes that have none.
    [[nodiscard]] Listeners::News take_listeners();
    /// Samples of connections have come.
    void note(const locality::ReadCounts& found);
    /// Works until `out_of_time` says so. True: there is nothing left to do.
    bool step(const OutOfTime& out_of_time) { return tasks_.step(out_of_time); }
    [[nodiscard]] bool has_news() const { return tasks_.has_news(); } ///< for step()
    /// At the end of a pass: forgets tasks that have ended, and has `most` connections of each policy
    /// sampled.
    void end_pass(std::size_t most);
    /// It is where its packets arrive, and they would not follow it.
    [[nodiscard]] bool is_settled(const TaskId& task) const {
        return tasks_.is_settled(task) || listeners_.has_own_arrivals(task);
    }
    void explain(const TaskId& process, status::ProcessExplanation& into) const;

    [[nodiscard]] Listeners& listeners() { return listeners_; }
    [[nodiscard]] ListenerRounds& rounds() { return rounds_; }
    [[nodiscard]] const TaskSteering& tasks() const { return tasks_; }
    [[nodiscard]] SampleLooks& looks() { return looks_; }

  private:
    [[nodiscard]] bool spread_workers(const planner::ResolvedPolicy& resolved);
    Parts parts_;
    Listeners listeners_;
    ListenerRounds rounds_{listeners_};
    TaskSteering tasks_;
    SampleLooks looks_;
};

} // namespace affinityd::app

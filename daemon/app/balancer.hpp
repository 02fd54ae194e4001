// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "app/log.hpp"
#include "app/task_table.hpp"
#include "app/world.hpp"
#include "planner/balance.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace affinityd::app {

class Weighing;

/// The stage of a pass that weighs tasks and interrupts, and relieves crowded cores: not more often than the
/// interval says, however many passes there are.
class Balancer {
  public:
    struct Parts {
        const host::Root& root;
        const Current& current;
        TaskTable& tasks;
        planner::Assignments& assignments;
        std::chrono::seconds interval; ///< 0: no task is moved, all are weighed once a minute
        struct {
            std::function<void()> has_moved; ///< tasks have other slots: another pass is to move them
            std::function<bool(const TaskId&)> is_settled; ///< it is not to be moved for a better balance
        } tell;
        Log& log;
    };
    explicit Balancer(Parts parts);
    ~Balancer();

    /// True: it is done, or not due.
    bool step(const OutOfTime& out_of_time);
    void use_interval(std::chrono::seconds interval) { parts_.interval = interval; }
    /// The worst at the last look that was left as it is; no value: there was none.
    [[nodiscard]] const std::optional<planner::Crowding>& crowding() const { return crowding_; }

  private:
    using Clock = std::chrono::steady_clock;
    void weigh_interrupts();
    void look();

    Parts parts_;
    std::optional<Clock::time_point> begun_; ///< the last time
    std::unique_ptr<Weighing> weighing_;
    std::map<unsigned, double> interrupt_seconds_; ///< by CPU, at `interrupts_at_`
    std::optional<Clock::time_point> interrupts_at_;
    planner::Balance balance_;
    std::optional<planner::Crowding> crowding_;
};

} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/interrupt_weighing.hpp"
#include "app/job.hpp"
#include "app/log.hpp"
#include "app/task_table.hpp"
#include "app/weighing.hpp"
#include "app/world.hpp"
#include "planner/redeal.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace affinityd::app {

/// The stage of a pass that weighs tasks, measures how well they are placed, and deals slots anew where that
/// gains something: not more often than the interval says, however many passes there are.
class Balancer {
  public:
    struct Parts {
        const host::Root& root;
        const Current& current;
        TaskTable& tasks;
        planner::Assignments& assignments;
        std::chrono::seconds interval; ///< 0: slots are never dealt anew, only measured once a minute
        struct {
            std::function<void()> has_moved; ///< tasks have other slots: another pass is to move them
            std::function<bool(const TaskId&)> is_settled; ///< it is not to be moved for what a re-deal gains
        } tell;
        Log& log;
    };
    explicit Balancer(Parts parts) : parts_(std::move(parts)), interrupts_(parts_.root, parts_.current) {}

    /// True: it is done, or not due.
    bool step(const OutOfTime& out_of_time);
    void use_interval(std::chrono::seconds interval) { parts_.interval = interval; }
    /// As last measured; no value: not yet.
    [[nodiscard]] const std::optional<planner::Goodness>& goodness() const { return goodness_; }

  private:
    using Clock = std::chrono::steady_clock;
    [[nodiscard]] bool is_due() const;
    void look_at_placements();
    void finish();

    Parts parts_;
    InterruptWeighing interrupts_;
    std::optional<Clock::time_point> begun_; ///< the last time
    std::unique_ptr<Weighing> weighing_;
    std::unique_ptr<planner::Redeal> redeal_; ///< refers to the placements of `basis_`
    std::shared_ptr<const planner::CpuLoad> basis_;
    std::optional<planner::Goodness> goodness_;
    std::size_t moved_ = 0; ///< tasks, by the last re-deal: the next pass measures what came of it
};

} // namespace affinityd::app

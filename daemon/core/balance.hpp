// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/shared.hpp"
#include "core/steering.hpp"
#include "core/tasks.hpp"
#include "planner/balance.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace affinityd::core {

/// The stage of a pass that weighs tasks and interrupts, and relieves crowded cores: not more often than
/// `redeal:` says, however many passes there are. With `redeal: 0` no task is moved, and all are weighed once
/// a minute.
///
/// The load of the machine is what tasks use, and not how many they are: the share of a CPU for which a
/// thread ran since it was last weighed, or would have run had it not waited; when it is weighed for the
/// first time, since its birth, if that was long enough ago. An unknown use is left as it was: one CPU at
/// first; a thread that the policy leaves to another program counts nothing.
class Balancer {
  public:
    /// References must outlive it.
    Balancer(Shared& shared, Tasks& tasks, const Steering& steering)
        : shared_(shared), tasks_(tasks), steering_(steering) {}

    /// True: it is done, or not due.
    bool step(const OutOfTime& out_of_time);
    /// The worst at the last look that was left as it is; no value: there was none.
    [[nodiscard]] const std::optional<planner::Crowding>& crowding() const { return crowding_; }

  private:
    using Clock = std::chrono::steady_clock;
    [[nodiscard]] Slices weigh_tasks(std::optional<Clock::time_point> last);
    [[nodiscard]] std::optional<planner::Weight> weight_of(KnownThread& thread, int pid,
                                                           std::optional<Clock::duration> since) const;
    void weigh_interrupts();
    void relieve();

    Shared& shared_;
    Tasks& tasks_;
    const Steering& steering_;
    std::optional<Clock::time_point> begun_;       ///< the last time
    std::optional<Slices> weighing_;               ///< that is under way
    std::map<unsigned, double> interrupt_seconds_; ///< by CPU, at `interrupts_at_`
    std::optional<Clock::time_point> interrupts_at_;
    planner::Balance balance_;
    std::optional<planner::Crowding> crowding_;
};

} // namespace affinityd::core

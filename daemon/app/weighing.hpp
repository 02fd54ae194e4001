// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "app/task_table.hpp"
#include "planner/assignments.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::app {

/// Weighs all tasks under policy, so that the load of the machine is what they use and not how many they are:
/// the share of a CPU for which a thread ran since it was last weighed, or would have run had it not waited;
/// when it is weighed for the first time, since its birth, if that was long enough ago. What is not known
/// is left as it was: one CPU at first; a thread that the policy leaves to somebody else counts nothing. The
/// assignments take the average over several times.
class Weighing final : public Job {
  public:
    using Clock = std::chrono::steady_clock;
    /// `before`: when the last weighing began; no value: there was none. References must outlive it.
    Weighing(const host::Root& root, TaskTable& tasks, planner::Assignments& assignments,
             std::optional<Clock::time_point> before);
    bool step(const OutOfTime& out_of_time) override;

  private:
    /// What the threads of one process use that have no slots of their own, by distribution; and its main
    /// thread, which goes by the same name.
    struct Sums {
        TaskId process;
        int next_tid = 0;
        std::map<unsigned, std::optional<planner::Weight>> weights;
    };
    [[nodiscard]] bool weigh(KnownProcess& process, const OutOfTime& out_of_time);
    [[nodiscard]] std::optional<planner::Weight> weight_of(KnownThread& thread, int pid) const;
    void settle(const KnownProcess& process);

    const host::Root& root_;
    TaskTable& tasks_;
    planner::Assignments& assignments_;
    std::optional<std::chrono::nanoseconds> since_; ///< the last weighing
    std::uint64_t ticks_ = 0;                       ///< since boot, now
    std::vector<int> pids_;
    std::optional<Sums> sums_;
};

} // namespace affinityd::app

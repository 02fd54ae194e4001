// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "app/task_table.hpp"
#include "app/work.hpp"
#include "locality/read_counts.hpp"
#include "planner/steering.hpp"
#include "status/status.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace affinityd::app {

/// Tasks under `steer: tasks`: each changes over to the lane where its packets arrive, at most once a
/// minute.
class TaskSteering {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::seconds between_moves{60}; ///< of one task
    static constexpr std::uint64_t most_reads = 64;          ///< of one task; then each counts half

    /// References must outlive it. `look_again` has a process placed where it belongs now.
    struct Parts {
        const Current& current;
        const TaskTable& tasks;
        planner::Assignments& assignments;
        const Releases& releases;
        std::function<void(int pid)> look_again;
        std::function<void()> has_news; ///< step() has something to do
    };
    explicit TaskSteering(Parts parts) : parts_(std::move(parts)) {}

    /// Reads were counted.
    void note(const locality::ReadCounts& found);
    /// A process was placed: it may have got its slot.
    void observe(const KnownProcess& process);
    /// Decides about tasks of which there is news. True: about all.
    bool step(const OutOfTime& out_of_time);
    [[nodiscard]] bool has_news() const { return !news_.empty(); } ///< for step()
    /// Forgets tasks that have ended, and policies that steer no tasks any more.
    void end_pass();

    /// The task is where its packets arrive, and that lane is not overloaded: it is not to be moved for less.
    [[nodiscard]] bool is_settled(const TaskId& task) const;

    /// How many tasks stand how, by policy.
    [[nodiscard]] std::map<std::string, status::TasksAtArrivals, std::less<>> states() const;
    void explain(const TaskId& process, status::ProcessExplanation& into) const;

  private:
    struct Known {
        TaskId process{};
        planner::Arrivals arrivals{};
        std::uint64_t reads = 0;
        planner::AtArrivals state = planner::AtArrivals::unknown;
        Clock::time_point movable{}; ///< it stays before that
    };
    [[nodiscard]] const planner::ResolvedPolicy* steered_by(const KnownProcess& process) const;
    void add_news(const TaskId& task);
    void decide(const TaskId& task, Known& known);

    Parts parts_;
    std::unordered_map<TaskId, Known> tasks_; ///< those of which packets were seen
    std::unordered_set<TaskId> news_;
};

} // namespace affinityd::app

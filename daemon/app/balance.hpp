// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "app/log.hpp"
#include "app/task_table.hpp"
#include "app/work.hpp"
#include "host/root.hpp"
#include "planner/balance.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>

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

/// Gets the newest latencies from the measurement history, for policies that say `measured`: at the beginning
/// of each pass, on a thread of its own, since a matrix is long. What is there counts from that pass on.
class LatencySource {
  public:
    explicit LatencySource(const host::Root& root) : root_(root) {}

    /// Begins to look into the history of `state_dir` ("": there is none), if some policy asks.
    void begin(const World& world, const std::string& state_dir);
    /// True: it has looked, and `world` has what it found; or that takes too long, and the next pass has it.
    [[nodiscard]] bool step(World& world, const OutOfTime& out_of_time);

  private:
    using Found = std::optional<machine::KnownLatencies>; ///< no value: nothing has changed
    const host::Root& root_;
    std::future<Found> reading_;
    std::chrono::steady_clock::time_point until_;
};

} // namespace affinityd::app

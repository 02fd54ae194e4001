// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/executor.hpp"
#include "app/truce.hpp"
#include "planner/placements.hpp"

#include <chrono>
#include <map>
#include <string>

namespace affinityd::app {

/// Carries out changes of interrupts and steering maps, and knows when not to: an interrupt whose CPU has no
/// vector left is put on another CPU near it and stays there for a while; one that somebody else keeps moving
/// is left alone, longer each time.
class QueueCare {
  public:
    using Clock = Truce::Clock;
    QueueCare(Executor& executor, Log& log) : executor_(executor), log_(log) {}

    /// `held`: what is known of the subject before this change. Nothing is returned if it was not the time to
    /// do anything.
    std::optional<enforcer::Applied> run(const planner::Action& action, const planner::Held* held,
                                         const planner::Placements& placements,
                                         const topology::Topology& topology,
                                         Clock::time_point now = Clock::now());

    /// True if run() would do nothing with it now.
    [[nodiscard]] bool rests(const planner::Action& action, Clock::time_point now = Clock::now()) const;
    /// Why a subject is not where it should be, for people; "" if there is nothing to say.
    [[nodiscard]] std::string note(const planner::Subject& subject,
                                   Clock::time_point now = Clock::now()) const;
    /// The hardware told of a change: drivers make their vectors and queues anew then, which is nobody's
    /// fight. Holds until counted().
    void expect_changes() { expects_changes_ = true; }
    void counted() { expects_changes_ = false; }
    /// Forgets what was put off: a person asked for everything anew.
    void forget() { states_.clear(); }

  private:
    struct State {
        CpuSet wanted;             ///< diverted: what could not be had
        CpuSet given;              ///< and what it got instead
        Clock::time_point again{}; ///< diverted: then it is tried anew
        Truce truce{};             ///< with whoever keeps moving it
    };
    enforcer::Applied divert(const planner::Action& action, const planner::Placements& placements,
                             const topology::Topology& topology, Clock::time_point now);
    Executor& executor_;
    Log& log_;
    bool expects_changes_ = false;
    std::map<std::string, State> states_; ///< by what it is called; only of subjects that ever made trouble
};

} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/kernel_changes.hpp"
#include "app/log.hpp"
#include "app/lost_records.hpp"
#include "app/task_table.hpp"
#include "app/world.hpp"
#include "enforcer/executor.hpp"
#include "planner/assignments.hpp"
#include "state/journal.hpp"

namespace affinityd::app {

/// Plans one thread, applies the plan, and notes the outcome: the one way for event and pass.
class ThreadPlacer {
  public:
    ThreadPlacer(const Current& current, state::Journal& journal, enforcer::Executor& executor,
                 const KernelChanges& changes, LostRecords& lost, Log& log)
        : current_(current), journal_(journal), executor_(executor), changes_(changes), lost_(lost),
          log_(log) {}

    /// `known`: the process's entry, null if no policy wants it. `creator`: the process whose thread made
    /// this one, and may have passed on one of our masks.
    void place(KnownProcess* known, const planner::ProcessView& process, const inventory::Thread& thread,
               unsigned index, int creator);

    /// What plans are made of now; with `assignments` of the caller's, looking at a plan assigns no slot.
    [[nodiscard]] planner::Planning planning(planner::Assignments& assignments) const {
        return {current_.placements(), assignments, journal_, &executor_};
    }
    [[nodiscard]] planner::Assignments& assignments() { return assignments_; }

  private:
    void apply(KnownThread* known, const planner::Action& action);
    void note(KnownProcess& process, const inventory::Thread& thread, const planner::ThreadPlan& plan);

    const Current& current_;
    state::Journal& journal_;
    enforcer::Executor& executor_;
    const KernelChanges& changes_;
    LostRecords& lost_;
    Log& log_;
    planner::Assignments assignments_;
};

} // namespace affinityd::app

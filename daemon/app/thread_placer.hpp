// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/joined_tasks.hpp"
#include "app/kernel_changes.hpp"
#include "app/load.hpp"
#include "app/placed.hpp"
#include "app/releases.hpp"
#include "app/task_table.hpp"
#include "app/undo.hpp"
#include "enforcer/executor.hpp"
#include "planner/assignments.hpp"
#include "state/former_slots.hpp"

namespace affinityd::app {

/// Plans one thread, applies the plan, and notes the outcome: the one way for event and pass. `plan` and
/// `explain` ask for the same plan without the rest.
class ThreadPlacer {
  public:
    /// A thread to be looked at.
    struct Look {
        const planner::ProcessView& process;
        const inventory::Thread& thread;
        unsigned index = 0; ///< place among the process's threads by tid, 0 = main thread
        int creator = 0; ///< the process whose thread made this one, and may have passed on one of our masks
    };
    ThreadPlacer(const Current& current, enforcer::Executor& executor, const KernelChanges& changes,
                 Undo& undo, JoinedTasks& joined, const Releases& releases, Placed& placed, Log& log,
                 state::FormerSlots former = {})
        : current_(current), executor_(executor), changes_(changes), undo_(undo), joined_(joined),
          releases_(releases), placed_(placed), log_(log), former_(std::move(former)) {}

    /// True for a process that no policy wants, and that may have been left behind with one of our masks.
    [[nodiscard]] bool may_be_left(const inventory::ProcessScan& scan) const {
        return undo_.may_be_left(scan, current_.placements().online);
    }
    /// `known`: the process's entry, null if no policy wants it.
    void place(KnownProcess* known, const Look& look);
    /// What place() would do now. The caller passes a copy of the assignments, so that no slot is assigned.
    [[nodiscard]] planner::ThreadPlan plan(const KnownProcess* known, const Look& look,
                                           planner::Assignments& assignments) const;
    /// What a thread has asked for itself; null: nothing.
    [[nodiscard]] const planner::Joined* joined(const TaskId& thread) const { return joined_.find(thread); }
    /// It has ended.
    void ended(const TaskId& thread) { joined_.ended(thread); }
    [[nodiscard]] planner::Assignments& assignments() { return assignments_; }
    /// Writes down which lanes tasks have, for the next daemon.
    void keep_slots();

  private:
    struct Found {
        planner::UndoPointer record;
        bool is_of_orphan = false;
    };
    [[nodiscard]] Found record_of(const machine::TaskMask& subject, const Look& look) const;
    [[nodiscard]] const std::string* policy_of(const Look& look) const;
    void add_record(const machine::TaskMask& subject, const Look& look);
    void apply(KnownProcess* process, const Look& look, const planner::Action& action);
    void count_unchanged(const machine::TaskMask& subject, const Look& look,
                         planner::ThreadPlan::State state);
    void note_found(const KnownProcess& process, KnownThread& known, const inventory::Thread& thread,
                    planner::ThreadPlan::State state) const;
    void note(KnownProcess& process, const inventory::Thread& thread, const planner::ThreadPlan& plan);

    const Current& current_;
    enforcer::Executor& executor_;
    const KernelChanges& changes_;
    Undo& undo_;
    JoinedTasks& joined_;
    const Releases& releases_;
    Placed& placed_;
    Log& log_;
    state::FormerSlots former_;
    planner::Assignments assignments_;
};

} // namespace affinityd::app

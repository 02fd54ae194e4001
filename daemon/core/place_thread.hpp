// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/pass.hpp"
#include "core/shared.hpp"
#include "core/task_table.hpp"
#include "core/undo.hpp"
#include "planner/assignments.hpp"
#include "planner/matcher.hpp"
#include "planner/place.hpp"

#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::core {

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
    /// References must outlive it.
    ThreadPlacer(Shared& shared, Undo& undo, Placed& placed)
        : shared_(shared), current_(shared.current), undo_(undo), placed_(placed) {}

    /// `known`: the process's entry, null if no policy wants it.
    void place(KnownProcess* known, const Look& look);
    /// The change that place() would make now. The caller passes a copy of the assignments, so that no slot
    /// is assigned.
    [[nodiscard]] planner::ThreadPlan plan(const KnownProcess* known, const Look& look,
                                           planner::Assignments& assignments) const;
    [[nodiscard]] planner::Assignments& assignments() { return assignments_; }
    [[nodiscard]] Undo& undo() const { return undo_; }

  private:
    [[nodiscard]] planner::UndoPointer record_of(const machine::TaskMask& subject, const Look& look) const;
    [[nodiscard]] planner::UndoPointer take_record(const machine::TaskMask& subject, const Look& look);
    [[nodiscard]] planner::ThreadPlan plan(planner::UndoPointer record, const KnownProcess* known,
                                           const Look& look, planner::Assignments& assignments) const;
    [[nodiscard]] const std::string* policy_of(const Look& look) const;
    [[nodiscard]] bool is_let_go(const Look& look) const;
    void apply(KnownProcess* process, const Look& look, const planner::Action& action);
    void note_found(const KnownProcess& process, KnownThread& known, const inventory::Thread& thread,
                    planner::ThreadPlan::State state, bool has_record) const;
    void note(KnownProcess& process, const inventory::Thread& thread, const planner::ThreadPlan& plan,
              bool has_record);

    Shared& shared_;
    const Current& current_;
    Undo& undo_;
    Placed& placed_;
    planner::Assignments assignments_;
};

} // namespace affinityd::core

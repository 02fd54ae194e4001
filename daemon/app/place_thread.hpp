// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "app/task_table.hpp"
#include "app/undo.hpp"
#include "planner/assignments.hpp"
#include "planner/matcher.hpp"
#include "planner/place.hpp"
#include "status/changes.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace affinityd::app {

/// Counts by policy what passes do, for those who wait for one, and what is placed for the first time, for
/// the log. The four ways tell it what they did; what they do because of events counts only as news.
class Placed {
  public:
    /// Something was asked for. The action has the subject's undo record until then.
    void carried(const planner::Action& action, const enforcer::Applied& applied);
    /// A subject was looked at, and has what its policy wants.
    void found_in_place(const machine::Subject& subject, std::string_view policy);
    /// A subject with a record keeps what another program has given it.
    void left(const std::string& policy);
    /// A subject was looked at, and is not to be asked for again now.
    void found_put_off(const machine::Subject& subject, std::string_view policy);

    /// The counts are dropped.
    void begin_pass();
    /// A pass may look at all queues twice, and begins anew if they are to be elsewhere.
    void begin_queues();
    /// Until its slice is over, a pass does all that is told.
    void use(bool is_in_pass) { is_in_pass_ = is_in_pass; }

    using Policies = std::map<std::string, status::PolicyChanges, std::less<>>;
    [[nodiscard]] const Policies& changes() const { return changes_; }
    [[nodiscard]] status::SubjectCounts put_back() const; ///< for all policies

    struct News {
        std::string policy;
        status::SubjectCounts placed;
    };
    /// Tasks placed for the first time that were not told: by the pass, and the first of each policy.
    [[nodiscard]] std::vector<News> take_news();
    /// Nothing is remembered of other policies.
    void forget_others(const policy::PolicySet& policies);

  private:
    struct Fresh {
        status::SubjectCounts placed;
        bool is_told = false; ///< what events place from now on is no news
    };
    [[nodiscard]] status::PolicyChanges& of(std::string_view policy);
    void count(const planner::Action& action, const enforcer::Applied& applied);

    Policies changes_;
    std::map<std::string, Fresh, std::less<>> fresh_;
    std::unordered_set<machine::Subject> counted_; ///< queues and units: each is once in a pass
    bool is_in_pass_ = false;
};

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

} // namespace affinityd::app

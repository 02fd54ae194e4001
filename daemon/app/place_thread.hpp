// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "app/task_table.hpp"
#include "app/undo.hpp"
#include "base/task_id.hpp"
#include "enforcer/enforcer.hpp"
#include "enforcer/executor.hpp"
#include "planner/action.hpp"
#include "planner/assignments.hpp"
#include "planner/matcher.hpp"
#include "policy/policy.hpp"
#include "state/former_slots.hpp"
#include "status/changes.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace affinityd::app {

/// What threads have asked for themselves, for those who place them.
class JoinedTasks {
  public:
    virtual ~JoinedTasks() = default;
    /// Null: nothing.
    [[nodiscard]] virtual const planner::Joined* find(const TaskId& thread) const = 0;
    /// The thread has ended.
    virtual void ended(const TaskId& thread) = 0;
};

/// Whether masks may have changed without anybody's doing: what the kernel and its drivers do when CPUs,
/// cpusets or interfaces change is no fight, and no drift to give way to. The first pass after such a change
/// knows of it.
class KernelChanges {
  public:
    explicit KernelChanges(enforcer::Executor& executor) : executor_(executor) {}

    /// CPUs or cpusets have changed.
    void expect() {
        tasks_.is_announced = true;
        expect_of_queues();
    }
    /// Interfaces have changed, which changes no mask of a task.
    void expect_of_queues() {
        queues_.is_announced = true;
        tell();
    }
    void begin_pass() {
        for (auto* term : {&tasks_, &queues_})
            *term = {false, term->is_expected()};
        tell();
        executor_.begin_pass();
    }
    /// The end: no pass follows.
    void stop() {
        tasks_ = queues_ = {};
        tell();
    }
    void end_pass() {
        for (auto* term : {&tasks_, &queues_})
            term->is_after_change = false;
        tell();
    }

    /// True if masks of tasks may have changed.
    [[nodiscard]] bool expected() const { return tasks_.is_expected(); }
    /// True from such a change until a pass begins: nobody has looked at all tasks since.
    [[nodiscard]] bool is_fresh() const { return tasks_.is_announced; }

  private:
    struct Term {
        bool is_announced = false;
        bool is_after_change = false;
        [[nodiscard]] bool is_expected() const { return is_announced || is_after_change; }
    };
    void tell() { executor_.expect_changes({tasks_.is_expected(), queues_.is_expected()}); }
    enforcer::Executor& executor_;
    Term tasks_, queues_;
};

struct FenceResult;

/// Counts by policy what passes do, for those who wait for one, and what is placed for the first time, for
/// the log. The four ways tell it what they did; what they do because of events counts only as news.
class Placed {
  public:
    /// Something was asked for. The action has the subject's undo record until then.
    void carried(const planner::Action& action, const enforcer::Applied& applied);
    /// A subject was looked at, and has what its policy wants.
    void found_in_place(const machine::Subject& subject, std::string_view policy);
    /// A subject was looked at, and is not to be asked for again now.
    void found_put_off(const machine::Subject& subject, std::string_view policy);
    /// The answer of systemd about a unit, which may come after the pass.
    void answered(const std::string& unit, const std::string& policy, const FenceResult& result);

    /// What was counted is dropped.
    void begin_pass();
    /// A pass may look at all queues twice, and begins anew if they are to be elsewhere.
    void begin_queues();
    /// What is told from now on is done by a pass, until its slice is over.
    void use(bool is_in_pass) { is_in_pass_ = is_in_pass; }

    using Policies = std::map<std::string, status::PolicyChanges, std::less<>>;
    [[nodiscard]] const Policies& changes() const { return changes_; }

    struct News {
        std::string policy;
        status::SubjectCounts placed;
    };
    /// What was placed for the first time and was not told: by the pass, and whatever came first of a policy.
    [[nodiscard]] std::vector<News> take_news();
    /// Of policies that are none of these, nothing is remembered.
    void forget_others(const policy::PolicySet& policies);

  private:
    struct Fresh {
        status::SubjectCounts placed;
        bool is_told = false; ///< what events place from now on is no news
    };
    [[nodiscard]] status::PolicyChanges& of(std::string_view policy);
    void count(const planner::Action& action, std::string_view policy, const enforcer::Applied& applied);

    Policies changes_;
    std::map<std::string, Fresh, std::less<>> fresh_;
    std::unordered_set<machine::Subject> counted_; ///< queues and units: each is once in a pass
    bool is_in_pass_ = false;
};

/// Why `subject` was not changed, in a few words.
[[nodiscard]] std::string reason_of(const enforcer::Applied& applied);

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

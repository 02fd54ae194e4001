// SPDX-License-Identifier: Apache-2.0
#include "core/place_thread.hpp"

#include "core/log.hpp"
#include "inventory/process_files.hpp"
#include "topology/reader.hpp"

#include <functional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace affinityd::core {

namespace {

using State = planner::ThreadPlan::State;
using planner::UndoPointer;

const KnownThread* find_thread(const KnownProcess* process, const TaskId& id) {
    const auto* thread = process == nullptr ? nullptr : process->threads.find(id.tid);
    return thread != nullptr && thread->id == id ? thread : nullptr;
}

/// The only undo record that the plan of one thread looks up.
struct OneRecord final : planner::UndoLookup {
    explicit OneRecord(UndoPointer one) : record(std::move(one)) {}
    [[nodiscard]] UndoPointer find(const machine::Subject&) const override { return record; }
    UndoPointer record;
};

} // namespace

/// Where the policy may give way, what a thread had in place without our doing tells whether another program
/// changes it.
void ThreadPlacer::note_found(const KnownProcess& process, KnownThread& known,
                              const inventory::Thread& thread, State state, bool has_record) const {
    if (current_->policy(process.policy).drift == policy::Drift::enforce) return known.found.reset();
    if (state != State::in_place || has_record) {
        if (state != State::yielded || has_record) known.found.reset();
        return;
    }
    // CPUs that are offline now are still in the mask.
    const auto& online = current_.placements().online;
    if (!known.found || (*known.found & online) != (thread.allowed & online)) known.found = thread.allowed;
}

void ThreadPlacer::note(KnownProcess& process, const inventory::Thread& thread,
                        const planner::ThreadPlan& plan, bool has_record) {
    auto& known = process.threads.insert(thread.id);
    if (known.comm != thread.comm) known.comm = thread.comm;
    // The kernel may just have reset a mask: the pass that knows of it decides whether to give way.
    if (!shared_.executor.awaits_pass() || plan.state != State::yielded) known.state = plan.state;
    known.present = thread.allowed;
    note_found(process, known, thread, plan.state, has_record);
    known.seat.table = plan.target ? assignments_.number(plan.target->distribution) : std::nullopt;
    if (!plan.target) {
        // A main thread stands for its process, whose slots others may use yet: the next weighing finds out.
        if (thread.id != process.id) assignments_.drop_others(thread.id, {});
        return;
    }
    known.wanted = plan.target->mask;
    known.seat.is_own = plan.target->is_own;
}

void ThreadPlacer::apply(KnownProcess* process, const Look& look, const planner::Action& action) {
    auto* known = process == nullptr ? nullptr : process->threads.find(look.thread.id.tid);
    const auto* descent = action.record || process == nullptr ? nullptr : &undo_.descent_of(process->id);
    const auto carried = shared_.executor.run(
        action,
        {current_->machine().topology, {}, [cpuset = look.process.cpuset] { return cpuset; }, descent});
    if (!carried) return;
    log_notices(shared_.log, carried->notices);
    const auto& applied = carried->applied;
    placed_.carried(action, applied);
    if (enforcer::took_effect(applied.outcome)) log_change(shared_.log, action);
    if (known == nullptr || !shared_.acts()) return; // a dry run knows it as it was found
    known->outcome = applied.outcome;
    if (!enforcer::took_effect(applied.outcome)) return;
    known->state = action.reason.claimants.empty() ? State::in_place : State::kept_off;
    known->present = applied.granted.cpus();
}

/// The policy that wants the thread, null if none does.
const std::string* ThreadPlacer::policy_of(const Look& look) const {
    if (look.process.policy) return &current_->policy(*look.process.policy).name;
    const auto& threads = current_.placements().threads;
    const auto queue = look.thread.is_kernel() ? threads.find(look.thread.id.tid) : threads.end();
    return queue == threads.end() ? nullptr : &queue->second.policy;
}

/// True for what was let go by hand: a process, which gets its originals back and is kept off no claimed CPUs
/// either, and a kernel thread that does the work of a queue.
bool ThreadPlacer::is_let_go(const Look& look) const {
    if (shared_.releases.empty()) return false;
    const auto* policy = look.thread.is_kernel() ? policy_of(look) : nullptr;
    return (policy != nullptr && shared_.releases.policy(*policy)) ||
           (!look.process.policy && shared_.releases.process(look.process.id));
}

/// The thread's undo record, or the one that it ought to have.
UndoPointer ThreadPlacer::record_of(const machine::TaskMask& subject, const Look& look) const {
    if (auto record = shared_.journal().find(subject)) return record;
    const auto& allowed = look.thread.allowed;
    const auto& online = current_.placements().online;
    const auto* wanted_by = policy_of(look);
    if (wanted_by != nullptr)
        if (auto record = undo_.recall(subject, allowed, *wanted_by, online)) return record;
    if (look.thread.is_kernel()) return nullptr;
    const auto* source = undo_.explain(subject, allowed, look.creator, online);
    if (source == nullptr) return nullptr;
    const auto& undo = source->terms->undo;
    if (shared_.keeps(undo.policy)) return nullptr;
    if (source->standing == state::Standing::kept && wanted_by == nullptr) return nullptr;
    return std::make_shared<planner::UndoRecord>(
        planner::UndoRecord{undo.original, allowed, allowed, undo.policy});
}

/// The same, and it is in the journal from then on.
UndoPointer ThreadPlacer::take_record(const machine::TaskMask& subject, const Look& look) {
    auto record = record_of(subject, look);
    auto& journal = shared_.journal();
    if (record && !journal.contains(subject)) {
        const auto& descent = undo_.descent_of(look.process.id);
        shared_.report(journal.put(subject, *record, &descent, subject.task.start_time));
    }
    return record;
}

planner::ThreadPlan ThreadPlacer::plan(const KnownProcess* known, const Look& look,
                                       planner::Assignments& assignments) const {
    const auto& thread = look.thread;
    return plan(record_of({thread.id, look.process.id.tid, thread.comm}, look), known, look, assignments);
}

planner::ThreadPlan ThreadPlacer::plan(UndoPointer record, const KnownProcess* known, const Look& look,
                                       planner::Assignments& assignments) const {
    auto process = look.process;
    const auto& thread = look.thread;
    const std::function<CpuSet()> cramped = [&] {
        const auto& topology = current_->machine().topology;
        return planner::cramped(topology, topology::read_room(shared_.root, topology),
                                inventory::read_resident(shared_.root, look.process.id.tid).value_or(0));
    };
    process.cramped = &cramped;
    if (is_let_go(look)) {
        if (!record) return {};
        planner::ThreadPlan plan{.state = State::changes};
        plan.action = planner::Action{machine::TaskMask{thread.id, process.id.tid, thread.comm},
                                      thread.allowed,
                                      record->original,
                                      "",
                                      planner::put_back,
                                      true,
                                      record};
        return plan;
    }
    const bool is_kept = record && shared_.keeps(record->policy);
    OneRecord one(is_kept ? nullptr : std::move(record));
    const planner::Planning planning{current_.placements(), assignments, one, &shared_.executor};
    // For a process that no policy wants any more, the undo record is the only evidence, and counts.
    const auto* before = find_thread(known, thread.id);
    const bool was_in_place = known == nullptr || (before != nullptr && before->state == State::in_place);
    const planner::ThreadView view{.thread = thread,
                                   .index = look.index,
                                   .may_be_reset = was_in_place && shared_.executor.tasks_may_have_changed(),
                                   .found = before != nullptr && before->found ? &*before->found : nullptr,
                                   .joined = before == nullptr ? nullptr : before->joined.get()};
    auto plan = planner::plan_thread(planning, process, view);
    if (plan.forget) {
        // From now on the mask counts as the thread's own: plan as if it had never been changed.
        one.record.reset();
        plan = planner::plan_thread(planning, process, view);
        plan.forget = true;
        if (plan.state == State::unwanted) plan.state = State::foreign; // `explain` says so
    }
    plan.forget |= is_kept;
    plan.is_kept = is_kept;
    return plan;
}

void ThreadPlacer::place(KnownProcess* known, const Look& look) {
    const auto& thread = look.thread;
    const machine::TaskMask subject{thread.id, look.process.id.tid, thread.comm};
    const auto record = take_record(subject, look);
    const auto plan = this->plan(record, known, look, assignments_);
    if (known != nullptr) note(*known, thread, plan, record != nullptr);
    if (plan.forget) {
        const auto standing = plan.is_kept ? state::Standing::kept : state::Standing::back;
        if (!plan.is_kept) placed_.left(record->policy);
        shared_.report(shared_.executor.part(subject, standing));
    }
    const auto* policy = policy_of(look);
    if (plan.is_by_kernel && policy != nullptr) undo_.follow_kernel(subject, thread.allowed, *policy);
    if (plan.action) return apply(known, look, *plan.action);
    if (policy == nullptr) return;
    if (plan.state == State::put_off || plan.state == State::outside || plan.state == State::immovable)
        placed_.found_put_off(subject, *policy);
    if (plan.state != State::in_place) return;
    placed_.found_in_place(subject, *policy);
    if (undo_.searching() && look.process.policy && plan.target &&
        !thread.allowed.contains(current_.placements().online))
        undo_.assume_ours(subject, thread.allowed, *policy, current_->machine().topology);
}

} // namespace affinityd::core

// SPDX-License-Identifier: Apache-2.0
#include "planner/plan.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityd::planner {

namespace {

using policy::Drift;
using State = ThreadPlan::State;

/// Equal as far as CPUs are online: the kernel reports offline CPUs of a mask in some places and not in
/// others.
bool same(const CpuSet& a, const CpuSet& b, const CpuSet& online) { return (a & online) == (b & online); }

bool same(const Setting& a, const Setting& b, const CpuSet& online) {
    return a.is_cpus() && b.is_cpus() ? same(a.cpus(), b.cpus(), online) : a == b;
}

/// The kernel was asked for this before and granted less (a cpuset): asking again changes nothing.
bool granted_already(const UndoPointer& record, const Setting& wanted, const Setting& present,
                     const CpuSet& online) {
    return record && record->asked == wanted && same(record->granted, present, online);
}

/// The same of a task. A mask with CPUs that were not asked for was not granted: the kernel has changed it
/// since, and asking again is worth it.
bool narrowed_already(const UndoPointer& record, const CpuSet& wanted, const CpuSet& present,
                      const CpuSet& online) {
    return granted_already(record, wanted, present, online) && wanted.contains(present & online);
}

/// A thread, with what is known of its past.
struct Case {
    const Planning& planning;
    const ProcessView& process;
    const ThreadView& view;
    UndoPointer record;

    [[nodiscard]] const CpuSet& present() const { return view.thread.allowed; }
    [[nodiscard]] const CpuSet& online() const { return planning.placements.online; }
    /// True if the thread may run wherever its cgroup lets it.
    [[nodiscard]] bool may_run_everywhere() const {
        return present().contains(process.cpuset == nullptr ? online() : *process.cpuset & online());
    }
    [[nodiscard]] TaskMask subject() const { return {view.thread.id, process.id.tid, {}}; }
    /// True if it has a mask from us, or only the kernel has changed that.
    [[nodiscard]] bool is_ours() const {
        const bool was_reset = view.may_be_reset && may_run_everywhere();
        return record && (was_reset || is_still_ours(*record, present(), online(), process.cpuset) ||
                          was_widened(subject(), *record, present(), online()));
    }
    /// True if it was found where its policy wants it, and another program has set another mask since.
    [[nodiscard]] bool has_left_its_place() const {
        if (view.found == nullptr || (view.may_be_reset && may_run_everywhere())) return false;
        const UndoRecord as_found{.original = {}, .asked = *view.found, .granted = *view.found, .policy = {}};
        return !is_still_ours(as_found, present(), online(), process.cpuset) &&
               !was_widened(subject(), as_found, present(), online());
    }
    [[nodiscard]] bool has(const CpuSet& wanted) const {
        return same(present(), wanted, online()) || narrowed_already(record, wanted, present(), online());
    }
    /// The thread is where it should be. If that is the kernel's doing, the record ends when CPUs return,
    /// unless it is brought up to date.
    [[nodiscard]] ThreadPlan in_place() const {
        return {.state = State::in_place,
                .is_by_kernel = record && !is_as_given(*record, present(), online()) && is_ours()};
    }
    [[nodiscard]] ThreadPlan change(const CpuSet& to, std::string policy, Reason reason, bool restore) const {
        const auto& thread = view.thread;
        return {.state = State::changes,
                .action = Action{TaskMask{thread.id, process.id.tid, thread.comm}, thread.allowed, to,
                                 std::move(policy), std::move(reason), restore, record}};
    }
    /// Restores the original if the mask is still ours; a mask that another program set since then stays.
    [[nodiscard]] ThreadPlan restored(std::string policy, Reason why) const {
        if (!is_ours()) return {.state = State::foreign, .forget = true};
        return change(record->original.cpus(), std::move(policy), std::move(why), true);
    }
};

/// A kernel thread of an interrupt goes where that goes.
bool follows_interrupt(const inventory::Thread& thread) {
    return thread.is_kernel() && thread.comm.starts_with("irq/");
}

/// No policy places the thread, and others have claimed CPUs that it could have: off these. No value: it is
/// not concerned.
std::optional<ThreadPlan> plan_kept_off(const Case& c) {
    const auto& placements = c.planning.placements;
    const CpuSet& original = c.record ? c.record->original.cpus() : c.present();
    const CpuSet taken = original & (c.view.thread.is_kernel() ? placements.isolated : placements.claimed);
    if (taken.empty() || follows_interrupt(c.view.thread)) return std::nullopt;
    const CpuSet rest = (original & placements.online) - taken;
    if (rest.empty()) return ThreadPlan{}; // an administrator put it there: a task needs some CPU
    auto kept_off = placements.kept_off(taken);
    ThreadPlan plan{.state = State::kept_off};
    if (!c.has(rest)) plan = c.change(rest, "", Reason(kept_off), false);
    plan.kept_off = std::move(kept_off);
    return plan;
}

/// No policy wants the thread: off exclusive CPUs if there are any, else back to what it had. A mask that
/// another program set since then is its own from now on: the next look keeps it off exclusive CPUs as it
/// would a thread that we never changed.
ThreadPlan plan_unwanted(const Case& c) {
    if (c.record && !c.is_ours()) return {.state = State::foreign, .forget = true};
    if (auto kept_off = plan_kept_off(c)) return std::move(*kept_off);
    if (!c.record) return {};
    return c.restored("", unwanted);
}

/// True if the policy gives way to the program that changed the mask after us. Under `yield`, a program that
/// may run everywhere again has given up its own mask.
bool gives_way(const Case& c, Drift drift) {
    if (drift == Drift::enforce || (c.record ? c.is_ours() : !c.has_left_its_place())) return false;
    return drift == Drift::once || !c.may_run_everywhere();
}

ThreadPlan plan_wanted(const Case& c) {
    const auto& placements = c.planning.placements;
    const auto& policy = *placements.policies[*c.process.policy].policy;
    if (!c.record && policy.prior == policy::Prior::keep && !c.present().contains(c.online()))
        return {.state = State::left_alone};
    auto target = place(placements, c.planning.assignments, c.process, c.view);
    if (!target) {
        // The policy may be out of force because others have claimed all its CPUs.
        if (target.error() == NoPlace::inactive && (!c.record || c.is_ours()))
            if (auto kept_off = plan_kept_off(c)) {
                if (kept_off->state == State::unwanted) kept_off->state = State::left_alone;
                kept_off->untouched = NoPlace::inactive;
                return std::move(*kept_off);
            }
        if (c.record)
            return c.restored(policy.name, "policy " + policy.name + " leaves it alone: its own mask back");
        return {.state = target.error() == NoPlace::outside ? State::outside : State::left_alone,
                .untouched = target.error()};
    }
    ThreadPlan plan{.state = State::yielded};
    if (c.has(target->mask))
        plan = c.in_place();
    else if (!gives_way(c, policy.drift))
        plan = c.change(target->mask, policy.name, reason_of(placements, *target), false);
    plan.target = std::move(*target);
    return plan;
}

ThreadPlan decide(const Case& c) {
    const auto& threads = c.planning.placements.threads;
    const auto queue = threads.find(c.view.thread.id.tid);
    if (c.view.thread.is_kernel() && queue != threads.end()) {
        const auto& [wanted, policy, reason] = queue->second;
        return c.has(wanted) ? c.in_place() : c.change(wanted, policy, reason, false);
    }
    return c.process.policy ? plan_wanted(c) : plan_unwanted(c);
}

bool is_put_off(const Planning& planning, const Action& action) {
    return planning.backoff != nullptr && planning.backoff->is_put_off(action);
}

} // namespace

Reason::Reason(const KeptOff& kept_off)
    : text(fmt::format("kept off CPU{} {}: exclusive of {}", kept_off.cpus.count() == 1 ? "" : "s",
                       kept_off.cpus.to_list(), fmt::join(kept_off.by, ", "))),
      claimants(kept_off.by) {}

bool is_as_given(const UndoRecord& record, const Setting& present, const CpuSet& online) {
    return same(present, record.granted, online) || same(present, record.asked, online) ||
           (record.before && same(present, *record.before, online));
}

bool is_still_ours(const UndoRecord& record, const Setting& present, const CpuSet& online,
                   const CpuSet* cpuset) {
    if (is_as_given(record, present, online)) return true;
    if (cpuset == nullptr || !present.is_cpus()) return false;
    const CpuSet kept = record.asked.cpus() & *cpuset;
    return same(present.cpus(), kept.intersects(online) ? kept : *cpuset, online);
}

ThreadPlan plan_thread(const Planning& planning, const ProcessView& process, const ThreadView& thread) {
    if (thread.thread.is_immovable()) return {.state = State::immovable};
    auto plan = decide(
        {planning, process, thread, planning.undo.find(TaskMask{thread.thread.id, process.id.tid, {}})});
    if (plan.action && is_put_off(planning, *plan.action)) {
        plan.state = State::put_off;
        plan.action.reset();
    }
    return plan;
}

void plan_process(const Planning& planning, const ProcessView& process,
                  std::span<const inventory::Thread> threads,
                  const std::function<void(const inventory::Thread&, const ThreadPlan&)>& sink) {
    for (std::size_t i = 0; i < threads.size(); ++i) {
        const bool may_be_reset = process.may_be_reset != nullptr && (*process.may_be_reset)(threads[i].id);
        sink(threads[i],
             plan_thread(planning, process, {threads[i], static_cast<unsigned>(i), may_be_reset}));
    }
}

void NarrowProcesses::add(const ResolvedPolicy& resolved, const TaskId& process, std::size_t threads,
                          const CpuSet& has, const CpuSet* cpuset) {
    const auto& own = resolved.policy->placement;
    if (std::ranges::any_of(resolved.policy->threads, [&](const policy::ThreadRule& rule) {
            return rule.placement.cpus && rule.placement.cpus_at.line != own.cpus_at.line;
        }))
        return;
    const auto may = (cpuset == nullptr ? resolved.allowed : resolved.allowed & *cpuset).count();
    if (4 * has.count() >= std::min(threads, may)) return;
    auto& [count, first] = found_[resolved.policy->name];
    if (++count == 1)
        first = fmt::format("process {} with {} threads has CPU {} of {}", process.tid, threads,
                            has.to_list(), may);
}

std::vector<Problem> NarrowProcesses::problems() const {
    std::vector<Problem> problems;
    for (const auto& [policy, found] : found_)
        problems.push_back({policy, "cpus",
                            "less than a quarter of the CPUs that it may use: " + found.second +
                                (found.first > 1 ? fmt::format(", and {} more", found.first - 1) : ""),
                            "leave together out, or let it have a wider group"});
    return problems;
}

Setting wanted_of(const QueueTarget& target, const UndoPointer& record, const Setting& present,
                  const CpuSet& online) {
    if (target.off.empty()) return target.wanted;
    CpuSet rest = (record ? record->original : present).cpus() - target.off;
    if (rest.intersects(online)) return rest;
    // RPS to no CPU is off; all else needs some.
    return std::holds_alternative<SteeringMask>(target.subject) ? Setting(CpuSet{}) : target.wanted;
}

bool is_in_place(const QueueTarget& target, const Setting& present, const UndoLookup& undo,
                 const CpuSet& online) {
    if (!target.off.empty()) {
        const auto known = undo.find(target.subject);
        const auto wanted = wanted_of(target, known, present, online);
        if (!known || !is_as_given(*known, present, online))
            return !present.cpus().intersects(target.off & online); // whatever other programs have set
        return same(present, wanted, online) || granted_already(known, wanted, present, online);
    }
    const bool is_irq = std::holds_alternative<IrqMask>(target.subject);
    const bool is_enough =
        std::holds_alternative<FlowTable>(target.subject) && present.count() >= target.wanted.count();
    if (is_enough || (is_irq ? same(present, target.wanted, online) : present == target.wanted)) return true;
    const auto record = undo.find(target.subject);
    return is_irq ? granted_already(record, target.wanted, present, online)
                  : record && record->asked == target.wanted && record->granted == present;
}

std::optional<Action> plan_queue(const Planning& planning, const QueueTarget& target,
                                 const Setting& present) {
    if (is_in_place(target, present, planning.undo, planning.placements.online)) return std::nullopt;
    auto record = planning.undo.find(target.subject);
    Action action{
        target.subject, present,       wanted_of(target, record, present, planning.placements.online),
        target.policy,  target.reason, false,
        record};
    if (is_put_off(planning, action)) return std::nullopt;
    return action;
}

bool was_widened(const Subject& subject, const UndoRecord& record, const Setting& present,
                 const CpuSet& online) {
    if (!std::holds_alternative<TaskMask>(subject) && !std::holds_alternative<IrqMask>(subject)) return false;
    const auto is_offline = [&](const Setting& given) {
        return given.is_cpus() && !given.cpus().empty() && !given.cpus().intersects(online);
    };
    const bool lost_all = (is_offline(record.granted) && is_offline(record.asked)) ||
                          (record.before && is_offline(*record.before));
    return lost_all && present.is_cpus() && present.cpus().contains(online);
}

} // namespace affinityd::planner

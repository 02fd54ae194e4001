// SPDX-License-Identifier: Apache-2.0
#include "planner/plan.hpp"

namespace affinityd::planner {

namespace {

using policy::Drift;
using State = ThreadPlan::State;

TaskMask subject_of(const Unit& unit) { return {unit.thread->id, unit.process.tid, unit.thread->comm}; }

/// Equal as far as CPUs are online: the kernel reports offline CPUs of a mask in some places and not in
/// others.
bool same(const CpuSet& a, const CpuSet& b, const CpuSet& online) { return (a & online) == (b & online); }

/// The kernel was asked for this before and granted less (a cpuset): asking again changes nothing.
bool granted_already(const Held* held, const CpuSet& wanted, const CpuSet& present, const CpuSet& online) {
    return held != nullptr && held->asked == wanted && same(held->granted, present, online);
}

ThreadPlan changes(const Unit& unit, const CpuSet& to, std::string policy, std::string reason, bool restore) {
    ThreadPlan plan;
    plan.state = State::changes;
    plan.action =
        Action{subject_of(unit), unit.thread->allowed, to, std::move(policy), std::move(reason), restore};
    return plan;
}

/// Nobody wants the thread: off exclusive CPUs if there are any, else back to what it had.
ThreadPlan plan_unwanted(const Placements& placements, const Unit& unit, const Held* held) {
    const auto& present = unit.thread->allowed;
    const CpuSet& original = held != nullptr ? held->original : present;
    if (original.intersects(placements.claimed) && !unit.thread->is_kernel()) {
        const CpuSet rest = (original & placements.online) - placements.claimed;
        if (rest.empty()) return {}; // it was put there by somebody who knew: a task needs some CPU
        if (same(present, rest, placements.online) || granted_already(held, rest, present, placements.online))
            return {.state = State::in_place, .action = {}, .target = {}};
        return changes(unit, rest, "",
                       "kept off CPUs " + placements.claimed.to_list() + ", which a policy claims for itself",
                       false);
    }
    if (held == nullptr) return {};
    return changes(unit, held->original, "", "no policy wants it any more: its own mask back", true);
}

ThreadPlan plan_queue_thread(const Placements& placements, const QueueThread& wanted, const Unit& unit,
                             const Held* held) {
    if (same(unit.thread->allowed, wanted.wanted, placements.online) ||
        granted_already(held, wanted.wanted, unit.thread->allowed, placements.online))
        return {.state = State::in_place, .action = {}, .target = {}};
    return changes(unit, wanted.wanted, wanted.policy, wanted.reason, false);
}

/// Changed by nobody: that is no drift to give way to.
bool is_reset(const Unit& unit, const CpuSet& online) {
    return unit.may_be_reset &&
           unit.thread->allowed.contains(unit.cpuset == nullptr ? online : *unit.cpuset & online);
}

bool has_mask_of_its_own(const Unit& unit, const CpuSet& online) {
    return !unit.thread->allowed.contains(online);
}

} // namespace

bool is_still_ours(const Held& held, const CpuSet& present, const CpuSet& online) {
    return same(present, held.granted, online) || same(present, held.asked, online);
}

ThreadPlan plan_thread(const Placements& placements, Assignments& assignments,
                       std::optional<std::size_t> policy, const Unit& unit, const Memory& memory) {
    const auto& thread = *unit.thread;
    if (thread.is_immovable()) return {.state = State::immovable, .action = {}, .target = {}};
    const Held* held = memory.find(subject_of(unit));
    if (const auto queue = placements.threads.find(thread.id.tid);
        queue != placements.threads.end() && thread.is_kernel())
        return plan_queue_thread(placements, queue->second, unit, held);
    if (!policy) return plan_unwanted(placements, unit, held);

    const auto& rules = *placements.policies[*policy].policy;
    if (held == nullptr && rules.prior == policy::Prior::keep && has_mask_of_its_own(unit, placements.online))
        return {.state = State::left_alone, .action = {}, .target = {}};
    auto target = place(placements, assignments, *policy, unit);
    if (!target) {
        const bool is_outside = target.error() == NoPlace::outside;
        if (held == nullptr)
            return {.state = is_outside ? State::outside : State::left_alone, .action = {}, .target = {}};
        return changes(unit, held->original, rules.name,
                       "policy " + rules.name + " leaves it alone: its own mask back", true);
    }
    ThreadPlan plan{.state = State::in_place, .action = {}, .target = *target};
    if (same(thread.allowed, target->mask, placements.online) ||
        granted_already(held, target->mask, thread.allowed, placements.online))
        return plan;
    if (held != nullptr && held->asked == target->mask && rules.drift != Drift::enforce &&
        !is_reset(unit, placements.online)) {
        plan.state = State::yielded;
        return plan;
    }
    plan = changes(unit, target->mask, rules.name, reason_of(placements, *target), false);
    plan.target = std::move(*target);
    return plan;
}

std::vector<Action> plan_queues(const Placements& placements, const Memory& memory) {
    std::vector<Action> actions;
    for (const auto& queue : placements.queues) {
        const bool is_irq = std::holds_alternative<IrqMask>(queue.subject);
        const Held* held = memory.find(queue.subject);
        const bool equal =
            is_irq ? same(queue.present, queue.wanted, placements.online) : queue.present == queue.wanted;
        const bool granted =
            is_irq ? granted_already(held, queue.wanted, queue.present, placements.online)
                   : held != nullptr && held->asked == queue.wanted && held->granted == queue.present;
        if (equal || granted) continue;
        actions.push_back({queue.subject, queue.present, queue.wanted, queue.policy, queue.reason, false});
    }
    return actions;
}

} // namespace affinityd::planner

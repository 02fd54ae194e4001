// SPDX-License-Identifier: Apache-2.0
#include "app/listeners.hpp"

#include "app/notices.hpp"
#include "state/listener_place.hpp"
#include "state/unconfirmed.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

using planner::ListenerTarget;
using planner::Setting;

constexpr std::chrono::seconds between_looks{5};                // at who has how many connections
constexpr std::chrono::seconds between_looks_at_unattended{10}; // listeners, where none is steered
constexpr std::size_t most_processes = 65536;                   // that are asked for

/// Its program has told it a CPU, or changed that since while the policy says once or yield.
bool is_left_alone(const Listeners::Parts& parts, const ListenerTarget& target, const Setting& present,
                   const std::optional<planner::UndoRecord>& record) {
    if (!record) return !present.cpus().empty();
    if (planner::is_as_given(*record, present, parts.current.placements().online)) return false;
    const auto* resolved = parts.current.placements().find(target.policy);
    return resolved->policy->drift != policy::Drift::enforce || present != record->original;
}

/// Somebody else has moved the worker since, and the policy says once or yield: it need not run where
/// connections for its lane arrive.
bool was_moved_away(const Listeners::Parts& parts, const planner::ResolvedPolicy& resolved,
                    const TaskId& process, const TaskId& worker) {
    if (resolved.policy->drift == policy::Drift::enforce) return false;
    const planner::TaskMask mask{worker, process.tid};
    const auto record = parts.journal.find(mask);
    if (!record) return false;
    const auto present = parts.enforcer.present(mask);
    return present && *present &&
           !planner::is_as_given(*record, **present, parts.current.placements().online);
}

/// One of its listeners is bound to the address of one of theirs.
bool shares_address(const inventory::AcceptSockets& process,
                    const std::vector<const inventory::AcceptSockets*>& others) {
    return std::ranges::any_of(process.sockets, [&](const auto& own) {
        return std::ranges::any_of(others, [&](const auto* other) {
            return std::ranges::find(other->sockets, own.bound_to, &inventory::AcceptSocket::bound_to) !=
                   other->sockets.end();
        });
    });
}

/// What processes have open that were not read now, as they take no connections: by policy, as of one
/// process; nothing, where they hold no listeners either.
std::map<std::string, inventory::AcceptSockets> held_by_idle(const IdleProcesses& idle,
                                                             const Listeners::Parts& parts) {
    std::map<std::string, inventory::AcceptSockets> rest;
    idle.for_each([&](const TaskId& process, const auto& held) {
        const auto* known = parts.tasks.find(process.tid);
        if (known == nullptr || known->id != process || known->is_elsewhere) return;
        auto& of_policy = rest[parts.current->policy(known->policy).name].held;
        of_policy.insert(of_policy.end(), held.begin(), held.end());
    });
    return rest;
}

} // namespace

Listeners::Listeners(const Parts& parts)
    : parts_(parts), list_(parts.enforcer.acts() && parts.root.is_live()
                               ? std::make_unique<inventory::AcceptList>(parts.root)
                               : nullptr),
      records_({parts.root, parts.current, parts.tasks, parts.journal, parts.enforcer, parts.executor,
                parts.releases, parts.placed, parts.log}) {}

bool Listeners::steers(const policy::Policy& policy) const {
    const bool may_accept = policy.steer == policy::Steer::automatic || policy.steer == policy::Steer::accept;
    if (policy.model != policy::Model::full || !may_accept) return false;
    const auto* resolved = parts_.current.placements().find(policy.name);
    return resolved != nullptr && resolved->active && !parts_.releases.policy(policy.name);
}

void Listeners::observe(const KnownProcess& process) {
    if (!list_ || process.is_elsewhere || !steers(parts_.current->policy(process.policy))) return;
    looks_ = 0;
    next_look_ = std::min(next_look_, Clock::now() + distances.front());
}

Listeners::Clock::time_point Listeners::next_look() const { return next_look_; }

std::vector<TaskId> Listeners::processes() const {
    const auto now = Clock::now();
    std::vector<TaskId> ids;
    for (const auto& [pid, process] : parts_.tasks.processes())
        if (!process.is_elsewhere && steers(parts_.current->policy(process.policy)) &&
            !idle_.rests(process.id, now, unattended_))
            ids.push_back(process.id);
    if (!ids.empty()) std::ranges::copy(parts_.releases.processes(), std::back_inserter(ids));
    std::ranges::sort(ids);
    if (ids.size() > most_processes) ids.resize(most_processes);
    return ids;
}

void Listeners::look() {
    const auto now = Clock::now();
    if (++looks_ < distances.size())
        next_look_ = now + distances[looks_];
    else
        next_look_ = !targets_.empty()        ? now + between_looks
                     : unattended_.are_some() ? now + between_looks_at_unattended
                                              : guard_.next_trial(now);
    if (list_ && !list_->ask(processes()))
        parts_.log.warn("no thread is to be had to look at listeners", "listeners not read");
}

Listeners::News Listeners::take() {
    const auto found = list_ ? list_->take() : std::nullopt;
    if (!found) return News::none;
    std::map<std::string, std::vector<const inventory::AcceptSockets*>> by_policy;
    std::vector<const inventory::AcceptSockets*> let_go;
    for (const auto& one : *found) {
        if (parts_.releases.process(one.process)) {
            let_go.push_back(&one);
            continue;
        }
        const auto* process = parts_.tasks.find(one.process.tid);
        if (process == nullptr || process->id != one.process) continue; // it has ended, or left its policy
        const auto& policy = parts_.current->policy(process->policy);
        if (steers(policy)) by_policy[policy.name].push_back(&one);
    }
    plans_.clear();
    const auto before = std::exchange(targets_, {});
    records_.forget_plans();
    const auto rest = held_by_idle(idle_, parts_);
    for (const auto& [policy, held] : rest)
        if (const auto* its = parts_.current.placements().find(policy);
            its != nullptr && steers(*its->policy))
            by_policy.try_emplace(policy);
    for (auto& [policy, processes] : by_policy) {
        for (const auto* one : let_go)
            if (shares_address(*one, processes)) processes.push_back(one);
        if (const auto its = rest.find(policy); its != rest.end()) processes.push_back(&its->second);
        plan(policy, processes);
    }
    keep_avoided(*found, before);
    std::set<std::uint64_t> unattended;
    for (const auto& [policy, plan] : plans_)
        unattended.insert(plan.unattended.begin(), plan.unattended.end());
    unattended_.see(unattended, Clock::now());
    // No target may be left that asks for another look.
    if (std::ranges::any_of(*found, &inventory::AcceptSockets::is_avoided))
        next_look_ = std::min(next_look_, Clock::now() + between_looks_at_unattended);
    return note_idle(*found) ? News::usage : News::plan;
}

void Listeners::follow_workers() {
    const auto follow = [this](std::vector<ListenerTarget>& targets) {
        for (auto& target : targets) {
            const auto* process = parts_.tasks.find(target.subject.process);
            if (process == nullptr) continue;
            if (const auto cpu = arrival_cpu(process->id, target.thread)) target.wanted = CpuSet{*cpu};
        }
    };
    follow(targets_);
    for (auto& [policy, plan] : plans_)
        follow(plan.targets);
}

/// True: who takes no connections while others of its policy do, is other than before.
bool Listeners::note_idle(const std::vector<inventory::AcceptSockets>& found) {
    const auto now = Clock::now();
    bool is_other = false;
    for (const auto& one : found)
        if (one.code == 0) // else it says nothing
            is_other |=
                idle_.see(one.process, !one.sockets.empty(), now, one.held, one.knows_all && !one.is_cut);
    idle_.keep_only([this](const TaskId& process) {
        const auto* known = parts_.tasks.find(process.tid);
        return known != nullptr && known->id == process;
    });
    is_other |= idle_.note_workers([this](const TaskId& process) {
        const auto* known = parts_.tasks.find(process.tid);
        const auto* plan = plan_of(parts_.current->policy(known->policy).name);
        return plan != nullptr && !plan->targets.empty() &&
               !plan->left.contains(planner::NotSteered::not_seen);
    });
    return is_other;
}

bool Listeners::takes_none(const KnownProcess& process) const { return idle_.takes_none(process.id); }

bool Listeners::has_own_arrivals(const TaskId& worker) const {
    return planner::has_own_arrivals(targets_, worker.tid);
}

void Listeners::begin_anew() {
    std::erase_if(plans_, [this](const auto& one) {
        const auto* resolved = parts_.current.placements().find(one.first);
        return resolved == nullptr || !steers(*resolved->policy);
    });
    std::erase_if(targets_, [this](const ListenerTarget& one) { return !is_wanted(one); });
    guard_.keep_only([this](const std::string& policy) {
        const auto* resolved = parts_.current.placements().find(policy);
        return resolved != nullptr && steers(*resolved->policy);
    });
    next_target_ = 0;
}

void Listeners::plan(const std::string& policy, const std::vector<const inventory::AcceptSockets*>& found) {
    const auto& topology = parts_.current->machine().topology;
    for (const auto* one : found) {
        if (one->code != 0 && one->code != ESRCH)
            parts_.log.warn(fmt::format("policy {}: listeners of process {} cannot be steered: {}", policy,
                                        one->process.tid, host::why_not_reached(one->code)),
                            "listeners not reached");
        // One that has a CPU from us without a record, since the journal was lost, gets its record first.
        for (const auto& socket : one->sockets)
            if (socket.incoming_cpu >= 0)
                parts_.lost.take_up(planner::subject_of(*one, socket),
                                    machine::setting_of(socket.incoming_cpu), policy, topology);
    }
    const auto arrives = [this](const TaskId& process, int thread) { return arrival_cpu(process, thread); };
    auto plan =
        planner::plan_listeners(policy, found, arrives, parts_.journal, unattended_.given_up(Clock::now()));
    guard(policy, found, plan);
    const auto note_place = [this](const planner::ListenerCpu& listener) {
        if (const auto done = state::note_place(parts_.journal, listener); !done)
            parts_.log.error(done.error().to_string());
    };
    for (const auto& target : plan.targets)
        note_place(target.subject);
    for (const auto* subjects : {&plan.undecided, &plan.decided_against})
        std::ranges::for_each(*subjects, note_place);
    targets_.insert(targets_.end(), plan.targets.begin(), plan.targets.end());
    records_.note(plan);
    plans_[policy] = std::move(plan);
}

/// What was told to listeners of a process that cannot be looked at for a while is in force all the same,
/// where nothing else is known of them or their workers.
void Listeners::keep_avoided(const std::vector<inventory::AcceptSockets>& found,
                             const std::vector<ListenerTarget>& before) {
    std::map<int, TaskId> avoided;
    for (const auto& one : found)
        if (one.is_avoided()) avoided.emplace(one.process.tid, one.process);
    if (avoided.empty()) return;
    std::set<std::uint64_t> known;
    for (const auto& one : found)
        for (const auto& socket : one.sockets)
            known.insert(socket.cookie);
    for (auto target : before) {
        const auto process = avoided.find(target.subject.process);
        if (process == avoided.end() || known.contains(target.subject.cookie) || !is_wanted(target) ||
            guard_.is_withdrawn(target.policy, target.bound_to, Clock::now()))
            continue;
        const auto cpu = arrival_cpu(process->second, target.thread);
        if (!cpu && cpu.error() != planner::NotSteered::settling) continue;
        if (cpu) target.wanted = CpuSet{*cpu};
        target.is_avoided = true;
        plans_[target.policy].targets.push_back(target);
        targets_.push_back(std::move(target));
    }
}

/// Withdraws steering from addresses where it would give one worker too much.
void Listeners::guard(const std::string& policy, planner::AcceptProcesses found,
                      planner::ListenerPlan& plan) {
    const auto now = Clock::now();
    for (const auto& unfair : guard_.see(policy, found, plan.targets, now))
        parts_.log.warn(fmt::format("policy {}: the listeners of port {} are not steered for {} min: one of "
                                    "{} workers {} in the last minute",
                                    policy, unfair.port,
                                    std::chrono::duration_cast<std::chrono::minutes>(unfair.pause).count(),
                                    unfair.share.workers, to_string(unfair)),
                        "listeners unfair");
    std::erase_if(plan.targets, [&](const ListenerTarget& target) {
        if (!guard_.is_withdrawn(policy, target.bound_to, now)) return false;
        plan.leave(planner::NotSteered::unfair, target.subject.process);
        return true;
    });
    for (const auto* process : found)
        for (const auto& socket : process->sockets)
            if (guard_.is_withdrawn(policy, socket.bound_to, now))
                records_.give_up(planner::subject_of(*process, socket));
}

std::expected<unsigned, planner::NotSteered> Listeners::arrival_cpu(const TaskId& process, int thread) const {
    using planner::NotSteered;
    if (parts_.releases.process(process)) return std::unexpected(NotSteered::released);
    const auto* known = parts_.tasks.find(process.tid);
    if (known == nullptr || known->id != process || known->settling)
        return std::unexpected(NotSteered::settling);
    const auto* resolved = parts_.current.placements().find(parts_.current->policy(known->policy).name);
    if (resolved == nullptr) return std::unexpected(NotSteered::settling);
    const auto* its = known->threads.find(thread);
    const bool is_own = its != nullptr && its->seat.is_own;
    if (was_moved_away(parts_, *resolved, process, its != nullptr ? its->id : process))
        return std::unexpected(NotSteered::moved);
    const auto cpu = planner::arrival_cpu(*resolved, parts_.assignments, is_own ? its->id : process);
    return cpu ? std::expected<unsigned, NotSteered>(*cpu)
               : std::unexpected(planner::why_no_arrival(*resolved));
}

/// Of a policy that steers, and of a process that is still under it.
bool Listeners::is_wanted(const ListenerTarget& target) const {
    const auto* process = parts_.tasks.find(target.subject.process);
    return plans_.contains(target.policy) && process != nullptr && !process->is_elsewhere &&
           parts_.current->policy(process->policy).name == target.policy &&
           !parts_.releases.process(process->id);
}

const ListenerTarget* Listeners::next_target() {
    return next_target_ < targets_.size() ? &targets_[next_target_++] : nullptr;
}

void Listeners::put_right(const ListenerTarget& target) {
    const auto* resolved = parts_.current.placements().find(target.policy);
    if (resolved == nullptr || !steers(*resolved->policy)) return; // since the plan was made
    if (target.is_avoided) return parts_.placed.found_put_off(target.subject, target.policy);
    const auto present = parts_.enforcer.present(target.subject);
    if (!present || !*present) return; // it is gone, or the next look says why it cannot be reached
    const auto before = parts_.journal.find(target.subject);
    const planner::Action action{target.subject, **present, target.wanted, target.policy,
                                 planner::Steering::accept};
    if (**present == target.wanted) {
        parts_.placed.found_in_place(target.subject, target.policy);
        if (const auto done = state::settle_unconfirmed(parts_.journal, target.subject, **present,
                                                        parts_.current.placements().online);
            !done)
            parts_.log.error(done.error().to_string());
        return;
    }
    if (!before && records_.is_full(target.policy)) {
        parts_.log.warn(
            fmt::format("policy {}: so many listeners that were steered have gone that no more are "
                        "until their records are dropped",
                        target.policy),
            "listeners full");
        return parts_.placed.found_put_off(target.subject, target.policy);
    }
    const auto carried = is_left_alone(parts_, target, **present, before)
                             ? std::nullopt
                             : parts_.executor.run(action, {parts_.current->machine().topology});
    if (!carried) return parts_.placed.found_put_off(target.subject, target.policy);
    log_notices(parts_.log, carried->notices);
    parts_.placed.carried(action, carried->applied, before);
    if (enforcer::took_effect(carried->applied.outcome)) log_change(parts_.log, action);
}

ListenerRecords::Sorted Listeners::without_target() {
    return records_.sort(targets_, [this](const std::string& policy) {
        const auto* resolved = parts_.current.placements().find(policy);
        return resolved != nullptr && steers(*resolved->policy);
    });
}

void Listeners::end_round() {
    if (const auto next = records_.end_round()) next_look_ = std::min(next_look_, *next);
}

const planner::ListenerPlan* Listeners::plan_of(std::string_view policy) const {
    const auto found = plans_.find(policy);
    return found == plans_.end() ? nullptr : &found->second;
}

void Listeners::explain(const TaskId& process, status::ProcessExplanation& into) const {
    for (const auto& target : targets_)
        if (target.subject.process == process.tid)
            into.accepting.listeners.push_back(
                {target.subject.port, target.thread, target.wanted.cpus().first()});
    if (into.released) return;
    const auto* plan = plan_of(into.policy);
    if (plan != nullptr)
        if (const auto its = plan->left_of.find(process.tid); its != plan->left_of.end())
            into.accepting.left = its->second;
    if (plan != nullptr)
        if (const auto its = plan->still_told.find(process.tid); its != plan->still_told.end())
            into.accepting.still_told = its->second;
    const auto* resolved = parts_.current.placements().find(into.policy);
    if (resolved != nullptr && planner::is_pinned_only(*resolved, plan))
        into.accepting.pinned = planner::pinned_note(*resolved);
    into.accepting.has_none =
        resolved != nullptr && steers(*resolved->policy) && idle_.has_no_listener(process);
    if (resolved != nullptr && !into.accepting.listeners.empty())
        into.accepting.alike = planner::alike_note(*resolved, plan);
}

} // namespace affinityd::app

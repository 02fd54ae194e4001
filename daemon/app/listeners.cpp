// SPDX-License-Identifier: Apache-2.0
#include "app/listeners.hpp"

#include "app/notices.hpp"
#include "state/unconfirmed.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

using planner::ListenerTarget;
using planner::Setting;

constexpr std::chrono::seconds between_looks{5}; ///< at who has how many connections

Setting setting_of(int cpu) { return cpu < 0 ? CpuSet() : CpuSet{static_cast<unsigned>(cpu)}; }

/// Somebody else has changed it since, and the policy says once or yield.
bool is_left_alone(const Listeners::Parts& parts, const ListenerTarget& target, const Setting& present) {
    const auto* resolved = parts.current.placements().find(target.policy);
    if (resolved->policy->drift == policy::Drift::enforce) return false;
    const auto record = parts.journal.find(target.subject);
    return record && !planner::is_as_given(*record, present, parts.current.placements().online);
}

} // namespace

Listeners::Listeners(const Parts& parts)
    : parts_(parts), list_(parts.enforcer.acts() && parts.root.is_live()
                               ? std::make_unique<inventory::AcceptList>(parts.root)
                               : nullptr) {}

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
            !parts_.releases.process(process.id) && !idle_.rests(process.id, now))
            ids.push_back(process.id);
    std::ranges::sort(ids);
    if (ids.size() > most_processes) ids.resize(most_processes);
    return ids;
}

void Listeners::look() {
    const auto now = Clock::now();
    if (++looks_ < distances.size())
        next_look_ = now + distances[looks_];
    else
        next_look_ = targets_.empty() ? guard_.next_trial(now) : now + between_looks;
    if (list_ && !list_->ask(processes()))
        parts_.log.warn("no thread is to be had to look at listeners", "listeners not read");
}

Listeners::News Listeners::take() {
    const auto found = list_ ? list_->take() : std::nullopt;
    if (!found) return News::none;
    std::map<std::string, std::vector<const inventory::AcceptSockets*>> by_policy;
    for (const auto& one : *found) {
        const auto* process = parts_.tasks.find(one.process.tid);
        if (process == nullptr || process->id != one.process) continue; // it has ended, or left its policy
        const auto& policy = parts_.current->policy(process->policy);
        if (steers(policy)) by_policy[policy.name].push_back(&one);
    }
    plans_.clear();
    targets_.clear();
    for (const auto& [policy, processes] : by_policy)
        plan(policy, processes);
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
            is_other |= idle_.see(one.process, !one.sockets.empty(), now);
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

void Listeners::begin_round() {
    std::erase_if(plans_, [this](const auto& one) {
        const auto* resolved = parts_.current.placements().find(one.first);
        return resolved == nullptr || !steers(*resolved->policy);
    });
    std::erase_if(targets_, [this](const ListenerTarget& one) { return !plans_.contains(one.policy); });
    guard_.keep_only([this](const std::string& policy) { return plans_.contains(policy); });
    next_target_ = 0;
}

void Listeners::plan(const std::string& policy, const std::vector<const inventory::AcceptSockets*>& found) {
    const auto& topology = parts_.current->machine().topology;
    for (const auto* one : found) {
        if (one->code == EPERM || one->code == EACCES || one->code == ENOSYS)
            parts_.log.warn(fmt::format("policy {}: listeners of process {} cannot be steered: {}", policy,
                                        one->process.tid, std::strerror(one->code)),
                            "listeners not reached");
        // One that has a CPU from us without a record, since the journal was lost, gets its record first.
        for (const auto& socket : one->sockets)
            if (socket.incoming_cpu >= 0)
                parts_.lost.take_up(planner::subject_of(*one, socket), setting_of(socket.incoming_cpu),
                                    policy, topology);
    }
    const auto arrives = [this](const TaskId& process, int thread) { return arrival_cpu(process, thread); };
    auto plan = planner::plan_listeners(policy, found, arrives, parts_.journal);
    const auto now = Clock::now();
    if (!plan.targets.empty())
        if (const auto share = guard_.see(policy, found, plan.targets, now))
            parts_.log.warn(
                fmt::format("policy {}: its listeners are not steered for a while: one of {} workers "
                            "got {:.0f} % of the connections in the last minute",
                            policy, share->workers, 100 * share->busiest));
    if (guard_.is_withdrawn(policy, now)) {
        plan.left[planner::NotSteered::unfair] += plan.targets.size();
        plan.targets.clear();
    }
    for (const auto& target : plan.targets)
        follow(target.subject);
    for (const auto& subject : plan.undecided)
        follow(subject);
    targets_.insert(targets_.end(), plan.targets.begin(), plan.targets.end());
    plans_[policy] = std::move(plan);
}

/// Servers give a listener to a new worker when they are reloaded: the record says who has it now, so that a
/// later daemon finds it.
void Listeners::follow(const planner::ListenerCpu& subject) {
    const auto* entry = parts_.journal.contents().held().queues().find_entry(subject);
    const auto* known = entry == nullptr ? nullptr : std::get_if<planner::ListenerCpu>(&entry->subject);
    if (known == nullptr || (known->process == subject.process && known->number == subject.number)) return;
    if (const auto done = parts_.journal.put(subject, planner::UndoRecord(entry->record)); !done)
        parts_.log.error(done.error().to_string());
}

std::optional<unsigned> Listeners::arrival_cpu(const TaskId& process, int thread) const {
    const auto* known = parts_.tasks.find(process.tid);
    if (known == nullptr || known->id != process || known->settling) return std::nullopt;
    const auto* resolved = parts_.current.placements().find(parts_.current->policy(known->policy).name);
    if (resolved == nullptr) return std::nullopt;
    const auto* its = known->threads.find(thread);
    const bool is_own = its != nullptr && its->seat.is_own;
    return planner::arrival_cpu(*resolved, parts_.assignments, is_own ? its->id : process);
}

const ListenerTarget* Listeners::next_target() {
    return next_target_ < targets_.size() ? &targets_[next_target_++] : nullptr;
}

void Listeners::put_right(const ListenerTarget& target) {
    const auto* resolved = parts_.current.placements().find(target.policy);
    if (resolved == nullptr || !steers(*resolved->policy)) return; // since the plan was made
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
    const auto carried = is_left_alone(parts_, target, **present)
                             ? std::nullopt
                             : parts_.executor.run(action, {parts_.current->machine().topology});
    if (!carried) return parts_.placed.found_put_off(target.subject, target.policy);
    log_notices(parts_.log, carried->notices);
    parts_.placed.carried(action, carried->applied, before);
    if (enforcer::took_effect(carried->applied.outcome)) log_change(parts_.log, action);
}

bool Listeners::steers(const planner::UndoRecord& record) const {
    const auto* resolved = parts_.current.placements().find(record.policy);
    return resolved != nullptr && steers(*resolved->policy) &&
           !guard_.is_withdrawn(record.policy, Clock::now());
}

/// While its policy steers, a listener without a target has a worker that is not known yet: nothing is wrong
/// with the CPU that it has. Or else it was closed.
std::vector<planner::Subject> Listeners::without_target(bool steered) const {
    std::unordered_set<planner::Subject> wanted;
    for (const auto& target : targets_)
        wanted.insert(target.subject);
    std::vector<planner::Subject> rest;
    for (auto& entry : parts_.journal.queues())
        if (std::holds_alternative<planner::ListenerCpu>(entry.subject) && !wanted.contains(entry.subject) &&
            steers(entry.record) == steered)
            rest.push_back(std::move(entry.subject));
    return rest;
}

void Listeners::drop_if_gone(const planner::Subject& subject, Clock::time_point now) {
    if (gone_.rests(subject, now)) return;
    const auto present = parts_.enforcer.present(subject);
    if (!present || *present || !gone_.see_gone(subject, now)) return;
    if (const auto done = parts_.executor.gone(subject); !done) parts_.log.error(done.error().to_string());
}

void Listeners::restore(const planner::Subject& subject) {
    const auto record = parts_.journal.find(subject);
    if (!record) return;
    if (parts_.current->keeps_after_removal(record->policy)) {
        if (const auto done = parts_.journal.settle(subject, state::Parting::kept); !done)
            parts_.log.error(done.error().to_string());
        return;
    }
    const auto carried = parts_.executor.restore(subject, parts_.current.placements().online);
    log_notices(parts_.log, carried.notices);
    parts_.placed.carried({subject, {}, record->original, "", planner::Restored::unwanted, true},
                          carried.applied, record);
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
    const auto* plan = plan_of(into.policy);
    if (into.accepting.listeners.empty() && plan != nullptr) into.accepting.left = plan->left;
    const auto* resolved = parts_.current.placements().find(into.policy);
    if (resolved != nullptr && planner::is_pinned_only(*resolved, plan))
        into.accepting.pinned = planner::pinned_note(*resolved);
}

bool ListenerRound::step(const OutOfTime& out_of_time) {
    if (!std::exchange(is_begun_, true)) listeners_.begin_round();
    while (const auto* target = listeners_.next_target()) {
        listeners_.put_right(*target);
        if (out_of_time()) return false;
    }
    if (!unwanted_) unwanted_ = listeners_.without_target(false);
    while (!unwanted_->empty()) {
        listeners_.restore(unwanted_->back());
        unwanted_->pop_back();
        if (out_of_time()) return false;
    }
    if (!doubtful_) doubtful_ = listeners_.without_target(true);
    while (!doubtful_->empty()) {
        listeners_.drop_if_gone(doubtful_->back(), Listeners::Clock::now());
        doubtful_->pop_back();
        if (out_of_time()) return false;
    }
    listeners_.end_round();
    return true;
}

} // namespace affinityd::app

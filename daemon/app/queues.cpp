// SPDX-License-Identifier: Apache-2.0
#include "app/queues.hpp"

#include "app/notices.hpp"
#include "machine/near.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

using planner::Action;
using planner::QueueTarget;
using planner::Setting;
using planner::Subject;

/// CPUs of the policy that may stand in for an interrupt's own.
std::vector<unsigned> stand_ins(const World& world, const Action& action) {
    const auto* resolved = world.placements().find(action.policy);
    if (resolved == nullptr || action.to.cpus().empty()) return {};
    return machine::nearest_others(world.machine().topology, action.to.cpus().first(), resolved->allowed);
}

} // namespace

void Queues::begin() {
    world_ = parts_.current.world;
    nic_.reset();
    next_ = 0;
    records_.reset();
    present_.clear(); // what is no longer wanted must not stay for ever
}

void Queues::begin(const std::string& nic) {
    begin();
    nic_ = nic;
}

bool Queues::is_put_off(const Action& action) const {
    return parts_.executor.rests(action, parts_.changes.expected());
}

planner::Planning Queues::planning() { return {parts_.current.placements(), none_, parts_.journal, this}; }

std::optional<Setting> Queues::read(const Subject& subject) {
    auto present = parts_.enforcer.present(subject);
    if (present) present_.insert_or_assign(subject, *present);
    else present_.erase(subject);
    return present;
}

std::optional<Action> Queues::plan(const QueueTarget& target) {
    if (parts_.releases.policy(target.policy)) return std::nullopt;
    const auto present = read(target.subject);
    return present ? planner::plan_queue(planning(), target, *present) : std::nullopt;
}

bool Queues::is_in_round(const QueueTarget& target) const { return !nic_ || target.nic == *nic_; }

void Queues::apply(const Action& action) {
    const auto& world = *parts_.current.world;
    const auto carried = parts_.executor.run(
        action, {world.machine().topology, parts_.changes.expected(), [&] { return stand_ins(world, action); }});
    if (!carried) return;
    log_notices(parts_.log, carried->notices);
    if (!enforcer::took_effect(carried->applied.outcome)) return;
    log_change(parts_.log, action);
    present_.insert_or_assign(action.subject, carried->applied.granted); // granted, not asked for
}

void Queues::put_right(const QueueTarget& target) {
    if (const auto action = plan(target)) return apply(*action);
    if (!parts_.lost.searching()) return;
    if (const auto found = present(target.subject); found && *found == target.wanted)
        parts_.lost.assume_ours(target.subject, *found, target.policy, parts_.current->machine().topology);
}

bool Queues::step(const OutOfTime& out_of_time) {
    if (world_ != parts_.current.world) begin(); // reloaded meanwhile
    const auto& targets = world_->placements().queues;
    while (next_ < targets.size()) {
        const auto& target = targets[next_++];
        if (!is_in_round(target)) continue;
        put_right(target);
        if (out_of_time()) return false;
    }
    return restore_unwanted(out_of_time);
}

bool Queues::is_wanted(const Subject& subject) const {
    return std::ranges::find(parts_.current.placements().queues, subject, &QueueTarget::subject) !=
           parts_.current.placements().queues.end();
}

bool Queues::restore_unwanted(const OutOfTime& out_of_time) {
    if (!records_) records_ = parts_.journal.queues();
    while (!records_->empty()) {
        const auto entry = std::move(records_->back());
        records_->pop_back();
        if (!machine::is_queue(entry.subject) || is_wanted(entry.subject)) continue;
        const auto carried = parts_.executor.restore(entry.subject, parts_.current.placements().online);
        log_notices(parts_.log, carried.notices);
        if (out_of_time()) return false;
    }
    return true;
}

std::optional<Setting> Queues::present(const Subject& subject) const {
    const auto found = present_.find(subject);
    return found == present_.end() ? std::nullopt : std::optional(found->second);
}

std::string Queues::note(const Subject& subject) const {
    const auto note = parts_.executor.backoff().note(subject, enforcer::Backoff::Clock::now());
    if (!note) return {};
    if (note->kind == enforcer::Backoff::Note::Kind::fought_over)
        return "fought over: somebody else keeps changing it, left alone for a while";
    return fmt::format("CPU {} has no interrupt vector left: on CPU {} instead", note->wanted.to_string(),
                       note->given.to_string());
}

} // namespace affinityd::app

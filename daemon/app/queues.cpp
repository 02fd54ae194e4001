// SPDX-License-Identifier: Apache-2.0
#include "app/queues.hpp"

#include "app/notices.hpp"
#include "enforcer/interface_queues.hpp"
#include "machine/near.hpp"
#include "netdev/lower.hpp"
#include "planner/shared_lines.hpp"

#include <algorithm>
#include <functional>
#include <unordered_set>
#include <utility>

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

/// The driver itself has done or refused it. It may have reset its interface before it refused.
bool has_asked_driver(enforcer::Outcome outcome) {
    using enforcer::Outcome;
    return enforcer::took_effect(outcome) || !(enforcer::has_gone(outcome) || outcome == Outcome::foreign ||
                                               outcome == Outcome::busy || outcome == Outcome::unrecorded);
}

/// True if nobody can say now how many queues the interface has.
bool is_unread(const machine::Machine& machine, const planner::QueueCount& count) {
    return std::ranges::any_of(machine.nics, [&](const netdev::Nic& nic) {
        const auto& device = nic.device.empty() ? nic.name : nic.device;
        return nic.channels_fault != 0 && device == count.device &&
               (!count.is_port || nic.ifindex == count.ifindex);
    });
}

/// No value: there is no such interface, or none is meant.
std::optional<std::string_view> device_of(const machine::Machine& machine,
                                          const std::optional<std::string>& nic) {
    const auto* found = nic ? machine.nic(*nic) : nullptr;
    if (found == nullptr) return std::nullopt;
    return found->device.empty() ? found->name : found->device;
}

std::vector<std::string> names_under(const machine::Machine& machine, const std::string& nic) {
    std::vector<std::string> names;
    if (const auto* found = machine.nic(nic))
        for (const auto* under : netdev::Stacks(machine.nics).under(*found))
            names.push_back(under->name);
    return names;
}

} // namespace

std::optional<Setting> Queues::read(const Subject& subject) {
    const auto present = parts_.enforcer.present(subject);
    if (!present) {
        parts_.log.warn(present.error().to_string(), "queue not read");
        present_.erase(subject); // nothing is known of it until the next look
        return std::nullopt;
    }
    if (*present)
        present_.insert_or_assign(subject, **present);
    else
        present_.erase(subject);
    return *present;
}

const QueueTarget& Queues::decider(const QueueTarget& target) const {
    return planner::decider(parts_.current.placements(), target,
                            [this](std::string_view policy) { return parts_.releases.policy(policy); });
}

/// False: its policy was released, or another target of the same line decides.
bool Queues::is_wanted(const QueueTarget& target) const {
    return !parts_.releases.policy(target.policy) && decider(target).rank == target.rank;
}

std::optional<Action> Queues::plan(const QueueTarget& target) {
    if (!is_wanted(target)) return std::nullopt;
    const auto present = read(target.subject);
    if (!present) return std::nullopt;
    if (std::holds_alternative<planner::QueueCount>(target.subject) && !is_due(target, *present))
        return std::nullopt;
    return planner::plan_queue({parts_.current.placements(), none_, parts_.journal, &parts_.executor}, target,
                               *present);
}

/// True if it is time to give an interface the number of queues that is wanted.
bool Queues::is_due(const QueueTarget& target, const Setting& present) {
    const auto record = parts_.journal.find(target.subject);
    const bool is_enough =
        planner::is_in_place(target, present, parts_.journal, parts_.current.placements().online);
    return gate_.see(
               {std::get<planner::QueueCount>(target.subject), present, target.wanted, is_enough, record},
               QueueCountGate::terms_of(parts_.settings.requeue_interval),
               QueueCountGate::Clock::now()) == QueueCountGate::Verdict::go;
}

/// The same where no policy wants a number now. While the policy that asked for one is in force, its workers
/// may only be away for a while.
bool Queues::is_due_back(const state::Entry& entry) {
    const auto* resolved = parts_.current.placements().find(entry.record.policy);
    const bool may_want_it =
        resolved != nullptr && resolved->active && resolved->policy->model == policy::Model::full &&
        resolved->policy->queues == policy::Queues::lanes && !parts_.releases.policy(entry.record.policy);
    const auto terms = QueueCountGate::terms_of(parts_.settings.requeue_interval);
    const auto now = QueueCountGate::Clock::now();
    const auto& count = std::get<planner::QueueCount>(entry.subject);
    const auto present = parts_.enforcer.present(entry.subject);
    if (!present || is_unread(parts_.current->machine(), count))
        return false;                                         // looked at again with each pass
    if (!may_want_it) return !gate_.rests(count, terms, now); // some drivers reset it before they refuse
    if (!*present) return true;
    return gate_.see({count, **present, entry.record.original, false, entry.record}, terms, now) ==
           QueueCountGate::Verdict::go;
}

void Queues::apply(const Action& action) {
    const auto& world = *parts_.current.world;
    const auto before = parts_.journal.find(action.subject);
    const auto* count = std::get_if<planner::QueueCount>(&action.subject);
    enforcer::Circumstances circumstances{world.machine().topology, [&] { return stand_ins(world, action); }};
    if (count != nullptr) // a driver may take seconds for it
        circumstances.written_down = [&](const auto&) {
            parts_.log.info(fmt::format("{}: {} -> {}: {}", machine::to_string(action.subject),
                                        action.from.to_string(), action.to.to_string(),
                                        planner::to_string(action.reason, action.policy)));
        };
    const auto carried = parts_.executor.run(action, circumstances);
    if (!carried) return;
    log_notices(parts_.log, carried->notices);
    parts_.placed.carried(action, carried->applied, before);
    const auto outcome = carried->applied.outcome;
    const bool took_effect = enforcer::took_effect(outcome);
    if (count != nullptr && has_asked_driver(outcome))
        gate_.changed(*count, carried->applied.granted, took_effect, QueueCountGate::Clock::now());
    if (!took_effect) return;
    if (count != nullptr) just_reset_.insert(*count);
    log_change(parts_.log, action);
    present_.insert_or_assign(action.subject, carried->applied.granted); // granted, not asked for
}

/// Its record is found first: it says who has changed the number since.
void Queues::put_count_right(const QueueTarget& target) {
    const auto present = is_wanted(target) ? read(target.subject) : std::nullopt;
    if (!present) return;
    parts_.lost.take_up(target.subject, *present, target.policy, parts_.current->machine().topology);
    if (const auto action = plan(target)) return apply(*action);
    const auto known = present_.find(target.subject);
    if (known != present_.end()) settle(target, known->second);
}

void Queues::put_right(const QueueTarget& target) {
    if (std::holds_alternative<planner::QueueCount>(target.subject)) return put_count_right(target);
    if (const auto count = enforcer::count_of(target.subject); count && just_reset_.contains(*count)) return;
    const auto action = plan(target);
    const auto found = present_.find(target.subject);
    if (found == present_.end() || !is_wanted(target)) return;
    const auto& topology = parts_.current->machine().topology;
    parts_.lost.take_up(target.subject, found->second, target.policy, topology);
    if (action) return apply(*action);
    const auto& online = topology.online;
    if (const auto record = parts_.journal.find(target.subject);
        record && !planner::is_as_given(*record, found->second, online) &&
        planner::was_widened(target.subject, *record, found->second, online))
        parts_.lost.follow_kernel(target.subject, found->second, target.policy);
    settle(target, found->second);
    if (parts_.lost.searching() && found->second == target.wanted)
        parts_.lost.assume_ours(target.subject, found->second, target.policy, topology);
}

/// It stays as it is.
void Queues::settle(const QueueTarget& target, const Setting& present) {
    count_unchanged(target, present);
    if (const auto done = parts_.executor.settle(target.subject, present, parts_.current.placements().online);
        !done)
        parts_.log.error(done.error().to_string());
}

void Queues::count_unchanged(const QueueTarget& target, const Setting& present) {
    const auto* count = std::get_if<planner::QueueCount>(&target.subject);
    if (count != nullptr && gate_.verdict(*count) != QueueCountGate::Verdict::in_place)
        return parts_.placed.found_put_off(target.subject, target.policy);
    const bool is_put_off =
        present != target.wanted && parts_.executor.is_put_off({target.subject, present, target.wanted,
                                                                target.policy, target.reason, false});
    if (is_put_off)
        parts_.placed.found_put_off(target.subject, target.policy);
    else
        parts_.placed.found_in_place(target.subject, target.policy);
}

bool Queues::guards_interrupts() const {
    return parts_.enforcer.acts() && parts_.current.world &&
           std::ranges::any_of(parts_.current.placements().queues, [](const auto& target) {
               return std::holds_alternative<planner::IrqMask>(target.subject);
           });
}

bool Queues::glance(const QueueTarget& target) {
    const auto* irq = std::get_if<planner::IrqMask>(&target.subject);
    const auto known = present_.find(target.subject);
    if (irq == nullptr || known == present_.end()) return false;
    const auto cpus = parts_.enforcer.glance(irq->irq);
    if (!cpus || known->second == *cpus) return false;
    const auto action = plan(target); // none if the number is another's by now, or its policy is released
    if (action) apply(*action);
    return action.has_value();
}

std::vector<planner::QueueCount> Queues::begin_round(const std::optional<std::string>& nic) {
    if (!nic) parts_.placed.begin_queues();
    const auto device = device_of(parts_.current->machine(), nic);
    std::erase_if(just_reset_, [&](const Subject& count) {
        return !nic || std::get<planner::QueueCount>(count).device == device;
    });
    if (nic && !device) return {};
    return enforcer::counts_in(parts_.journal, device);
}

void Queues::look_at(const planner::QueueCount& count, bool is_recent) {
    const auto& online = parts_.current.placements().online;
    if (const auto done = parts_.executor.look_at(count, online, is_recent); !done)
        parts_.log.warn(done.error().to_string(), "queue not read");
}

std::vector<Subject> Queues::unwanted(const std::optional<std::string>& nic) {
    const auto device = device_of(parts_.current->machine(), nic);
    if (nic && !device) return {}; // it has gone: the next pass sees to what it left
    std::unordered_set<Subject> wanted;
    for (const auto& target : parts_.current.placements().queues)
        if (is_wanted(target)) wanted.insert(target.subject);
    std::vector<Subject> rest;
    const auto is_count = [](const Subject& subject) {
        return std::holds_alternative<planner::QueueCount>(subject);
    };
    for (auto& entry : parts_.journal.queues(device))
        if (machine::is_queue(entry.subject) && !wanted.contains(entry.subject) &&
            (!is_count(entry.subject) || is_due_back(entry)))
            rest.push_back(std::move(entry.subject));
    std::ranges::stable_partition(rest, std::not_fn(is_count));
    return rest;
}

std::optional<Action> Queues::plan_restore(const Subject& subject) {
    const auto record = parts_.journal.find(subject);
    if (!record || parts_.current->keeps_after_removal(record->policy)) return std::nullopt;
    const auto present = read(subject);
    const auto& online = parts_.current.placements().online;
    if (!present || (!planner::is_still_ours(*record, *present, online) &&
                     !planner::was_widened(subject, *record, *present, online)))
        return std::nullopt;
    return Action{subject, *present, record->original, "", planner::Restored::unwanted, true};
}

void Queues::restore_unwanted(const Subject& subject) {
    const auto record = parts_.journal.find(subject);
    if (record && parts_.current->keeps_after_removal(record->policy)) {
        if (const auto done = parts_.journal.settle(subject, state::Parting::kept); !done)
            parts_.log.error(done.error().to_string());
        return;
    }
    const auto carried = parts_.executor.restore(subject, parts_.current.placements().online);
    log_notices(parts_.log, carried.notices);
    const auto outcome = carried.applied.outcome;
    const auto* count = std::get_if<planner::QueueCount>(&subject);
    if (count != nullptr && has_asked_driver(outcome))
        gate_.changed(*count, carried.applied.granted, enforcer::took_effect(outcome),
                      QueueCountGate::Clock::now());
    if (record)
        parts_.placed.carried({subject, {}, record->original, "", planner::Restored::unwanted, true},
                              carried.applied, record);
}

void Queues::end_round() {
    gate_.end_round(QueueCountGate::terms_of(parts_.settings.requeue_interval), QueueCountGate::Clock::now());
    std::unordered_map<Subject, Setting> rest;
    for (const auto& target : parts_.current.placements().queues)
        if (auto node = present_.extract(target.subject)) rest.insert(std::move(node));
    present_ = std::move(rest);
}

void Queues::add_state(const QueueTarget& target, status::QueueStatus& into) const {
    using State = status::QueueStatus::State;
    const auto say = [&](State state, std::string note = {}) {
        into.state = state;
        into.note = std::move(note);
    };
    const auto& other = decider(target);
    const auto note = parts_.executor.note(target.subject);
    if (parts_.releases.policy(target.policy)) return say(State::released);
    if (!note && other.rank != target.rank)
        return say(State::decided_by_other,
                   fmt::format("one line with {} of policy {}, which decides", other.nic, other.policy));
    if (note && note->kind == enforcer::Backoff::Note::Kind::fought_over)
        return say(State::fought_over,
                   "fought over: somebody else keeps changing it, left alone for a while");
    if (note)
        return say(State::stood_in, fmt::format("CPU {} has no interrupt vector left: on CPU {} instead",
                                                note->wanted.to_string(), note->given.to_string()));
    if (into.present == planner::Setting{} && !present_.contains(target.subject)) return say(State::not_read);
    if (planner::is_in_place(target, into.present, parts_.journal, parts_.current.placements().online))
        return say(State::in_place);
    const auto* count = std::get_if<planner::QueueCount>(&target.subject);
    const auto verdict = count == nullptr ? QueueCountGate::Verdict::in_place : gate_.verdict(*count);
    if (verdict == QueueCountGate::Verdict::foreign)
        return say(State::left_alone, std::string(to_string(verdict)));
    if (const auto* refusal = parts_.executor.refusals().find(target.subject))
        return say(
            refusal->outcome == enforcer::Outcome::immovable ? State::immovable : State::refused,
            enforcer::to_string(*refusal).append(enforcer::refusal_hint(target.subject, refusal->code)));
    if (verdict == QueueCountGate::Verdict::settles || verdict == QueueCountGate::Verdict::waits)
        return say(State::waits, std::string(to_string(verdict)));
    say(State::not_in_place);
}

status::QueueStatus Queues::status(const QueueTarget& target) const {
    status::QueueStatus value{.subject = target.subject,
                              .nic = target.nic,
                              .policy = target.policy,
                              .wanted = target.wanted,
                              .present = {},
                              .reason = target.reason,
                              .original = {},
                              .note = {},
                              .shared_with = target.shared_with};
    if (const auto found = present_.find(target.subject); found != present_.end())
        value.present = found->second;
    if (const auto record = parts_.journal.find(target.subject)) value.original = record->original;
    add_state(target, value);
    return value;
}

status::QueueStatus Queues::status_now(const QueueTarget& target) const {
    auto value = status(target);
    if (!parts_.enforcer.acts()) return value; // a dry run shows what it would have done
    if (auto present = parts_.enforcer.present(target.subject); present && *present)
        value.present = std::move(**present);
    add_state(target, value);
    return value;
}

bool QueueRound::is_meant(const std::string& nic) const {
    return !nic_ || nic == *nic_ || std::ranges::find(under_, nic) != under_.end();
}

bool QueueRound::step(const OutOfTime& out_of_time) {
    if (world_ != queues_.current().world || version_ != world_->version()) {
        world_ = queues_.current().world;
        version_ = world_->version();
        next_ = 0;
        unwanted_.reset();
        numbers_.reset();
    }
    if (!numbers_) numbers_ = queues_.begin_round(nic_);
    while (!numbers_->empty()) {
        queues_.look_at(numbers_->back(), nic_.has_value());
        numbers_->pop_back();
        if (out_of_time()) return false;
    }
    if (nic_ && next_ == 0) under_ = names_under(world_->machine(), *nic_);
    const auto& targets = world_->placements().queues;
    while (next_ < targets.size()) {
        const auto& target = targets[next_++];
        if (!is_meant(target.nic)) continue;
        queues_.put_right(target);
        if (out_of_time()) return false;
    }
    if (!unwanted_) unwanted_ = queues_.unwanted(nic_);
    while (!unwanted_->empty()) {
        queues_.restore_unwanted(unwanted_->back());
        unwanted_->pop_back();
        if (out_of_time()) return false;
    }
    if (!nic_) queues_.end_round();
    return true;
}

} // namespace affinityd::app

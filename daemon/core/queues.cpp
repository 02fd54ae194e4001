// SPDX-License-Identifier: Apache-2.0
#include "core/queues.hpp"

#include "core/log.hpp"
#include "machine/machine.hpp"
#include "netdev/lower.hpp"
#include "planner/lanes.hpp"

#include <algorithm>
#include <functional>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace affinityd::core {

namespace {

using planner::Action;
using planner::QueueTarget;
using planner::Setting;
using planner::Subject;

/// CPUs of the policy that may stand in for an interrupt's own.
std::vector<unsigned> stand_ins(const World& world, const Action& action) {
    const auto* resolved = world.placements().find(action.policy);
    if (resolved == nullptr || action.to.cpus().empty()) return {};
    if (!resolved->allowed.contains(action.to.cpus())) return {}; // it is only kept off them
    return machine::nearest_others(world.machine().topology, action.to.cpus().first(), resolved->allowed);
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
    const auto present = shared_.enforcer.present(subject);
    if (!present) {
        shared_.log.warn(present.error().to_string(), "queue not read");
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
    return planner::decider(shared_.current.placements(), target,
                            [this](std::string_view policy) { return shared_.releases.policy(policy); });
}

/// False: its policy was released, or another target of the same line decides.
bool Queues::is_wanted(const QueueTarget& target) const {
    return !shared_.releases.policy(target.policy) && decider(target).rank == target.rank;
}

std::optional<Action> Queues::plan(const QueueTarget& target) {
    if (!is_wanted(target)) return std::nullopt;
    const auto present = read(target.subject);
    return present ? plan(target, *present) : std::nullopt;
}

std::optional<Action> Queues::plan(const QueueTarget& target, const Setting& present) {
    return planner::plan_queue({shared_.current.placements(), none_, shared_.journal(), &shared_.executor},
                               target, present);
}

void Queues::apply(const Action& action) {
    const auto& world = *shared_.current.world;
    const auto carried =
        shared_.executor.run(action, {world.machine().topology, [&] { return stand_ins(world, action); }});
    if (!carried) return;
    log_notices(shared_.log, carried->notices);
    placed_.carried(action, carried->applied);
    if (!enforcer::took_effect(carried->applied.outcome) || !shared_.enforcer.acts()) return;
    log_change(shared_.log, action);
    present_.insert_or_assign(action.subject, carried->applied.granted); // granted, not asked for
}

/// Reads the target's subject, and sets it if it is not as it should be.
void Queues::put_right(const QueueTarget& target) {
    if (!is_wanted(target)) return;
    const auto present = read(target.subject);
    if (!present) return;
    const auto& topology = shared_.current->machine().topology;
    undo_.take_up(target.subject, *present, target.policy, topology.online);
    if (const auto action = plan(target, *present)) return apply(*action);
    if (const auto record = shared_.journal().find(target.subject);
        record && !planner::is_as_given(*record, *present, topology.online) &&
        planner::was_widened(target.subject, *record, *present, topology.online))
        undo_.follow_kernel(target.subject, *present, target.policy);
    count_unchanged(target, *present);
    if (undo_.searching() && *present == target.wanted)
        undo_.assume_ours(target.subject, *present, target.policy, topology);
}

void Queues::count_unchanged(const QueueTarget& target, const Setting& present) {
    if (!target.off.empty() && !shared_.journal().contains(target.subject)) return; // it was never on them
    const bool is_put_off =
        present != target.wanted && shared_.executor.is_put_off({target.subject, present, target.wanted,
                                                                 target.policy, target.reason, false});
    if (is_put_off)
        placed_.found_put_off(target.subject, target.policy);
    else
        placed_.found_in_place(target.subject, target.policy);
}

bool Queues::guards_interrupts() const {
    return shared_.enforcer.acts() && shared_.current.world &&
           std::ranges::any_of(shared_.current.placements().queues, [](const auto& target) {
               return std::holds_alternative<planner::IrqMask>(target.subject);
           });
}

/// Puts an interrupt right whose mask is another one than when it was last read or written; cheap where it is
/// not. True: it was put right.
bool Queues::put_right_if_changed(const QueueTarget& target) {
    const auto* irq = std::get_if<planner::IrqMask>(&target.subject);
    const auto known = present_.find(target.subject);
    if (irq == nullptr || known == present_.end()) return false;
    const auto cpus = shared_.enforcer.glance(irq->irq);
    if (!cpus || known->second == *cpus) return false;
    const auto action = plan(target); // none if the number is another's by now, or its policy is released
    if (action) apply(*action);
    return action.has_value();
}

std::vector<Subject> Queues::unwanted(const std::optional<std::string>& nic) {
    const auto device = device_of(shared_.current->machine(), nic);
    if (nic && !device) return {}; // it has gone: the next pass sees to what it left
    std::unordered_set<Subject> wanted;
    for (const auto& target : shared_.current.placements().queues)
        if (is_wanted(target)) wanted.insert(target.subject);
    std::vector<Subject> rest;
    for (auto& entry : shared_.journal().queues(device))
        if (machine::is_queue(entry.subject) && !wanted.contains(entry.subject))
            rest.push_back(std::move(entry.subject));
    return rest;
}

std::optional<Action> Queues::plan_restore(const Subject& subject) {
    const auto record = shared_.journal().find(subject);
    if (!record || shared_.keeps(record->policy)) return std::nullopt;
    const auto present = read(subject);
    const auto& online = shared_.current.placements().online;
    if (!present || (!planner::is_still_ours(*record, *present, online) &&
                     !planner::was_widened(subject, *record, *present, online)))
        return std::nullopt;
    return Action{subject, *present, record->original, "", planner::unwanted, true, record};
}

/// Restores the original of a subject that no policy wants any more.
void Queues::restore_unwanted(const Subject& subject) {
    const auto record = shared_.journal().find(subject);
    if (!record) return;
    if (shared_.keeps(record->policy)) {
        shared_.report(shared_.executor.part(subject, state::Standing::kept));
        return;
    }
    const auto carried = shared_.executor.restore(subject, record, shared_.current.placements().online);
    log_notices(shared_.log, carried.notices);
    placed_.carried({subject, {}, record->original, "", planner::unwanted, true, record}, carried.applied);
}

void Queues::add_state(const QueueTarget& target, status::QueueStatus& into) const {
    using State = status::QueueStatus::State;
    const auto say = [&](State state, std::string note = {}) {
        into.state = state;
        into.note = std::move(note);
    };
    const auto& other = decider(target);
    const auto* rest = shared_.executor.rest(target.subject);
    if (shared_.releases.policy(target.policy)) return say(State::released);
    if (rest == nullptr && other.rank != target.rank)
        return say(State::decided_by_other,
                   fmt::format("one line with {} of policy {}, which decides", other.nic, other.policy));
    if (rest != nullptr && !rest->diverted)
        return say(State::fought_over,
                   "fought over: another program keeps changing it; left alone for a while");
    if (rest != nullptr)
        return say(State::stood_in, fmt::format("CPU {} has no interrupt vector left: on CPU {} instead",
                                                rest->wanted->to_string(), rest->diverted->to_string()));
    if (into.present == planner::Setting{} && !present_.contains(target.subject)) return say(State::not_read);
    if (planner::is_in_place(target, into.present, shared_.journal(), shared_.current.placements().online))
        return say(State::in_place);
    if (const auto* trouble = shared_.executor.trouble(target.subject);
        trouble != nullptr && trouble->refusal)
        return say(trouble->refusal->outcome == enforcer::Outcome::immovable ? State::immovable
                                                                             : State::refused,
                   enforcer::to_string(*trouble->refusal));
    say(shared_.enforcer.acts() ? State::not_in_place : State::would_change);
}

status::QueueStatus Queues::status(const QueueTarget& target) const {
    status::QueueStatus value{.subject = target.subject,
                              .nic = target.nic,
                              .policy = target.policy,
                              .wanted = {},
                              .present = {},
                              .reason = target.reason,
                              .original = {},
                              .note = {},
                              .shared_with = target.shared_with};
    if (const auto found = present_.find(target.subject); found != present_.end())
        value.present = found->second;
    const auto record = shared_.journal().find(target.subject);
    if (record) value.original = record->original;
    value.wanted = planner::wanted_of(target, record, value.present, shared_.current.placements().online);
    value.is_kept_off = !target.off.empty();
    add_state(target, value);
    return value;
}

status::QueueStatus Queues::status_now(const QueueTarget& target) const {
    auto value = status(target);
    if (auto present = shared_.enforcer.present(target.subject); present && *present)
        value.present = std::move(**present);
    add_state(target, value);
    return value;
}

bool Queues::concerns(const std::string& nic) const {
    const auto index = shared_.root.sys().number("class/net/" + nic + "/ifindex");
    const auto& machine = shared_.current->machine();
    return std::ranges::any_of(shared_.current.placements().queues, [&](const QueueTarget& target) {
        const auto* known = machine.nic(target.nic);
        return target.nic == nic || (known != nullptr && index && known->ifindex == *index);
    });
}

Slices Queues::reread(std::string nic) {
    auto& current = shared_.current;
    const auto before = current.world; // stays for the reader
    machine::InterfaceReader reader(shared_.root, nic, before->machine());
    auto done = reader.step(a_part);
    for (; done && !*done; done = reader.step(a_part))
        co_yield pause;
    if (done) {
        machine::Machine machine = current->machine();
        reader.put_into(machine);
        current->update(std::move(machine));
    } else {
        shared_.log.error(
            nic + " could not be read again, going on with what is known: " + done.error().to_string(),
            "machine not read");
    }
    ++links_read_;
    for (auto its = round(nic); !its.step(a_part);)
        co_yield pause;
}

Slices Queues::round(std::optional<std::string> nic) {
    std::shared_ptr<World> world;
    std::uint64_t version = 0;
    const auto is_current = [&] { return world == shared_.current.world && version == world->version(); };
    do {
        world = shared_.current.world;
        version = world->version();
        if (!nic) placed_.begin_queues();
        // A bond's ports are placed by which of them is in use.
        const auto under = nic ? names_under(world->machine(), *nic) : std::vector<std::string>();
        for (std::size_t next = 0; is_current() && next < world->placements().queues.size(); ++next) {
            const auto& target = world->placements().queues[next];
            if (nic && target.nic != *nic && std::ranges::count(under, target.nic) == 0) continue;
            put_right(target);
            co_yield pause;
        }
        const auto rest = is_current() ? unwanted(nic) : std::vector<Subject>();
        for (std::size_t next = 0; is_current() && next < rest.size(); ++next) {
            restore_unwanted(rest[next]);
            co_yield pause;
        }
    } while (!is_current());
    if (nic) co_return;
    // Forgets the settings of subjects that are no targets any more.
    std::unordered_map<Subject, Setting> still;
    for (const auto& target : world->placements().queues)
        if (auto node = present_.extract(target.subject)) still.insert(std::move(node));
    present_ = std::move(still);
}

Slices Queues::glance() {
    const auto world = shared_.current.world;
    const auto version = world->version();
    bool has_found = false;
    // With other policies or placements, a round over all queues is on its way.
    for (std::size_t next = 0; world == shared_.current.world && version == world->version() &&
                               next < world->placements().queues.size();
         ++next) {
        has_found |= put_right_if_changed(world->placements().queues[next]);
        co_yield pause;
    }
    if (has_found) shared_.want_pass();
}

} // namespace affinityd::core

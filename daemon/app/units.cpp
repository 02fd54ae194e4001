// SPDX-License-Identifier: Apache-2.0
#include "app/units.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

constexpr unsigned most_searches = 5;
constexpr const char* in_place = "in place";
constexpr const char* not_yet = "not yet";

const planner::ResolvedPolicy* find_cpuset_policy(const Current& current, std::string_view name) {
    const auto* found = current.placements().find(name);
    return found != nullptr && found->policy->means == policy::Means::cpuset ? found : nullptr;
}

} // namespace

/// A call of restore() that is under way.
struct Units::Restoring {
    Restored done;
    std::size_t open = 1; ///< units, and the call itself
    std::size_t count = 0;

    void close(bool is_restored) {
        count += is_restored ? 1 : 0;
        if (--open == 0) done(count);
    }
};

Units::Units(Parts parts)
    : parts_(std::move(parts)), writer_(parts_.executor, parts_.properties, parts_.log) {}

void Units::observe(const TaskId& process, std::string_view cgroup, std::size_t policy) {
    if (!parts_.acts || is_stopping_) return;
    const auto known = members_.find(process.tid);
    const auto& asked = parts_.current->policy(policy);
    if (asked.means != policy::Means::cpuset) {
        if (known != members_.end()) forget(known->second.process);
        return;
    }
    const auto place = find_unit(cgroup);
    const std::string name = place ? place->unit : "";
    if (known != members_.end()) {
        const auto& member = known->second;
        if (member.process == process && member.unit == name && member.policy == asked.name) return;
        forget(member.process);
    }
    members_.insert_or_assign(process.tid, Member{process, name, asked.name});
    if (!place) return;
    auto& unit = units_[name];
    unit.folder = place->folder;
    const bool is_new = ++unit.policies[asked.name] == 1;
    if (is_new && has_passed_) make_due(name);
}

void Units::forget(const TaskId& process) {
    const auto known = members_.find(process.tid);
    if (known == members_.end() || known->second.process != process) return;
    const auto member = std::move(known->second);
    members_.erase(known);
    leave(member);
}

void Units::leave(const Member& member) {
    const auto found = units_.find(member.unit);
    if (found == units_.end()) return;
    auto& policies = found->second.policies;
    const auto policy = policies.find(member.policy);
    if (policy == policies.end() || --policy->second > 0) return;
    policies.erase(policy);
    make_due(member.unit); // nobody wants it any more, or two policies wanted it and now one does
}

void Units::begin_pass() {
    if (!parts_.acts || is_stopping_) return;
    has_passed_ = true;
    for (const auto& entry : parts_.executor.journal().queues())
        if (const auto* unit = std::get_if<machine::UnitCpuset>(&entry.subject))
            units_.try_emplace(unit->unit);
    for (auto& [name, unit] : units_)
        make_due(name);
}

void Units::make_due(const std::string& name) {
    auto& unit = units_.at(name);
    if (std::exchange(unit.is_due, true)) return;
    unit.walk.reset();
    unit.foreign = 0;
    unit.searches = 0;
    if (unit.is_called) return; // settled() comes back to it
    const bool was_empty = due_.empty();
    due_.push_back(name);
    if (was_empty && parts_.work_left) parts_.work_left();
}

bool Units::step(const OutOfTime& out_of_time) {
    while (!due_.empty()) {
        const std::string name = std::move(due_.back());
        due_.pop_back();
        const auto found = units_.find(name);
        if (found == units_.end() || !found->second.is_due || found->second.is_called) continue;
        const bool is_over = look(name, found->second, out_of_time);
        if (!is_over) due_.push_back(name);
        if (!is_over || out_of_time()) break;
    }
    return due_.empty();
}

/// True: it was looked at. False: there is more to look at in another slice.
bool Units::look(const std::string& name, Unit& unit, const OutOfTime& out_of_time) {
    auto found = obstacle(unit);
    if (is_wanted(unit) && found.empty()) {
        const auto result = search(name, unit, out_of_time);
        if (result == Search::unfinished) return false;
        if (result == Search::unclear) { // a fence that is there stays until the next pass
            unit.is_due = false;
            unit.state = "its processes cannot be read, or change too fast";
            return true;
        }
        if (result == Search::found)
            found = fmt::format("process {} of it is not under the policy", unit.foreign);
    }
    unit.is_due = false;
    settle(name, unit, std::move(found));
    return true;
}

bool Units::is_wanted(const Unit& unit) const {
    return std::ranges::any_of(unit.policies, [&](const auto& entry) {
        return find_cpuset_policy(parts_.current, entry.first) != nullptr &&
               !parts_.releases.policy(entry.first);
    });
}

std::string Units::obstacle(const Unit& unit) const {
    if (!is_wanted(unit)) return {};
    if (unit.policies.size() > 1) return "claimed by another policy too";
    if (!parts_.root.sys().exists("fs/cgroup/cgroup.controllers"))
        return "cpusets of units need the unified cgroup hierarchy";
    const auto* policy = find_cpuset_policy(parts_.current, unit.policies.begin()->first);
    if (policy == nullptr || policy->allowed.empty()) return "its policy cannot be carried out here";
    return {};
}

/// Looks for a process that is not under the unit's policy. One that was found must be found again: a process
/// that was forked a moment ago is not known yet, although it will be under the policy.
Units::Search Units::search(const std::string& name, Unit& unit, const OutOfTime& out_of_time) {
    if (!unit.walk) unit.walk.emplace(parts_.root.sys(), "fs/cgroup" + unit.folder);
    std::vector<int> pids;
    for (bool is_last = false; !is_last;) {
        pids.clear();
        const auto read = unit.walk->step(pids);
        if (!read) return Search::unclear;
        is_last = *read;
        const auto foreign = std::ranges::find_if(pids, [&](int pid) {
            const auto member = members_.find(pid);
            return member == members_.end() || member->second.unit != name;
        });
        if (foreign != pids.end()) {
            if (std::exchange(unit.foreign, *foreign) == *foreign) return Search::found;
            if (++unit.searches >= most_searches) return Search::unclear;
            unit.walk.reset();
            return Search::unfinished;
        }
        if (!is_last && out_of_time()) return Search::unfinished;
    }
    return Search::none;
}

FenceWish Units::wish_for(const Unit& unit, std::string obstacle) const {
    FenceWish wish{.is_unconfirmed = unit.is_unconfirmed};
    if (!is_wanted(unit)) return wish;
    wish.policy = unit.policies.begin()->first;
    wish.obstacle = std::move(obstacle);
    if (const auto* policy = find_cpuset_policy(parts_.current, wish.policy); policy != nullptr) {
        wish.cpus = policy->allowed;
        wish.drift = policy->policy->drift;
    }
    return wish;
}

/// Of a unit that no policy wants: true if there is nothing to restore, or nothing that may be.
bool Units::drop_record(const std::string& name) {
    const machine::UnitCpuset subject{name};
    if (!parts_.executor.journal().contains(subject)) return true;
    const auto& unit = units_.at(name);
    const bool is_removed = !unit.policy.empty() && parts_.current.placements().find(unit.policy) == nullptr;
    if (!is_removed || !unit.stays_if_removed) return false;
    if (const auto done = parts_.executor.part(subject, state::Standing::kept); !done)
        parts_.log.error(done.error().to_string());
    return true;
}

void Units::settle(const std::string& name, Unit& unit, std::string obstacle) {
    unit.walk.reset();
    auto restoring = std::exchange(unit.restoring, {});
    auto wish = restoring.empty() ? wish_for(unit, std::move(obstacle)) : FenceWish{};
    if (restoring.empty() && wish.policy.empty() && drop_record(name)) {
        if (unit.policies.empty()) units_.erase(name);
        return;
    }
    if (!wish.policy.empty()) {
        unit.policy = wish.policy;
        unit.stays_if_removed = parts_.current->keeps_on_stop(wish.policy);
    }
    unit.is_called = true;
    writer_.settle(name, std::move(wish), parts_.current.placements().online,
                   [this, name, restoring = std::move(restoring)](const FenceResult& result) {
                       settled(name, result);
                       for (const auto& one : restoring)
                           one->close(result.is_restored);
                   });
}

void Units::settled(const std::string& name, const FenceResult& result) {
    auto& unit = units_.at(name);
    unit.is_called = false;
    unit.is_unconfirmed = result.is_unconfirmed;
    unit.state = result.state;
    const bool is_due = std::exchange(unit.is_due, false);
    const std::string policy = unit.policy;
    if (!unit.restoring.empty())
        settle(name, unit, {});
    else if (is_due)
        make_due(name);
    else if (unit.policies.empty())
        units_.erase(name);
    if (result.is_changed && parts_.fences_changed) parts_.fences_changed();
    if (parts_.settled) parts_.settled(name, policy, result);
}

void Units::restore(const Choose& choose, Restored done) {
    using Choice = Restorer::Choice;
    const auto restoring = std::make_shared<Restoring>(Restoring{std::move(done)});
    for (const auto& entry : parts_.executor.journal().queues()) {
        const auto* subject = std::get_if<machine::UnitCpuset>(&entry.subject);
        const auto choice = subject == nullptr ? Choice::skip : choose(entry);
        if (choice == Choice::skip) continue;
        auto& unit = units_[subject->unit];
        std::erase_if(members_, [&](const auto& member) { return member.second.unit == subject->unit; });
        unit.policies.clear();
        if (choice == Choice::keep) {
            if (const auto done_with = parts_.executor.part(*subject, state::Standing::kept); !done_with)
                parts_.log.error(done_with.error().to_string());
            continue;
        }
        ++restoring->open;
        unit.restoring.push_back(restoring);
        if (!unit.is_called) settle(subject->unit, unit, {});
    }
    restoring->close(false);
}

void Units::begin_stop() {
    is_stopping_ = true;
    due_.clear();
    for (auto& [name, unit] : units_)
        unit.is_due = false;
    restore(
        [this](const state::Entry& entry) {
            return parts_.current->keeps_on_stop(entry.record->policy) ? Restorer::Choice::keep
                                                                       : Restorer::Choice::restore;
        },
        [](std::size_t) {});
    // One that systemd is being asked about may get its record only when the answer comes.
    for (auto& [name, unit] : units_)
        if (unit.is_called && unit.restoring.empty() && !parts_.current->keeps_on_stop(unit.policy))
            unit.restoring.push_back(std::make_shared<Restoring>(Restoring{[](std::size_t) {}}));
}

bool Units::awaits_systemd() const {
    return std::ranges::any_of(units_, [](const auto& entry) { return entry.second.is_called; });
}

std::vector<status::UnitStatus> Units::status() const {
    std::vector<status::UnitStatus> list;
    for (const auto& [name, unit] : units_) {
        if (!is_wanted(unit)) continue;
        const auto& policy = unit.policies.begin()->first;
        const auto* resolved = parts_.current.placements().find(policy);
        list.push_back({name, policy, resolved == nullptr ? CpuSet{} : resolved->allowed,
                        unit.state.empty() ? not_yet : unit.state});
    }
    return list;
}

std::vector<planner::Problem> Units::problems() const {
    std::vector<planner::Problem> list;
    for (const auto& [pid, member] : members_)
        if (member.unit.empty())
            list.push_back({member.policy, fmt::format("process {}", pid),
                            "it is in no unit of the system: affinity alone is used",
                            "start it as a service of systemd"});
    for (const auto& [name, unit] : units_)
        if (is_wanted(unit) && !unit.state.empty() && unit.state != in_place)
            list.push_back({unit.policies.begin()->first, name, unit.state + ": affinity alone is used",
                            "systemctl status " + name});
    return list;
}

void Units::explain(const TaskId& process, status::ProcessExplanation& into) const {
    const auto member = members_.find(process.tid);
    if (member == members_.end() || member->second.process != process) return;
    const auto unit = units_.find(member->second.unit);
    if (unit == units_.end()) return;
    into.fenced_unit = unit->first;
    into.fence_state = unit->second.state.empty() ? not_yet : unit->second.state;
}

} // namespace affinityd::app

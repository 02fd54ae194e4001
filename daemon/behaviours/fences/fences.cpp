// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "behaviours/fences/unit_cpus.hpp"
#include "behaviours/list.hpp"
#include "inventory/process_files.hpp"
#include "inventory/process_scan.hpp"
#include "planner/plan.hpp"
#include "policy/cgroup_path.hpp"

#include <algorithm>
#include <cerrno>
#include <expected>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityd::behaviours {

namespace {

constexpr const char* in_place = "in place";
constexpr const char* not_yet = "not yet";
constexpr const char* no_answer = "systemd does not answer for it";

const planner::ResolvedPolicy* find_cpuset_policy(const Current& current, std::string_view name) {
    const auto* found = current.placements().find(name);
    return found != nullptr && found->policy->means == policy::Means::cpuset ? found : nullptr;
}

std::string refusal(int code) {
    if (is_without_answer(code)) return no_answer;
    return "systemd refuses: " + std::generic_category().message(code);
}

/// With those of the groups below it, as some services have them: an Error if these are too many, as the user
/// of a unit may make any number.
Result<std::vector<int>> processes_below(const host::Dir& sys, const std::string& group) {
    constexpr std::size_t most = 256;
    std::vector<std::string> groups{group};
    std::vector<int> all;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        if (groups.size() > most) return fail("it has too many control groups", group, E2BIG);
        const auto pids = inventory::processes_in(sys, groups[i]);
        if (!pids) return std::unexpected(pids.error());
        all.insert(all.end(), pids->begin(), pids->end());
        const auto names = sys.list("fs/cgroup" + groups[i]);
        if (!names) return std::unexpected(names.error());
        for (const auto& name : *names)
            if (auto child = groups[i] + "/" + name; sys.exists("fs/cgroup" + child + "/cgroup.procs"))
                groups.push_back(std::move(child));
    }
    return all;
}

/// The way of systemd units: each pass sets the AllowedCPUs= of those whose processes are all under one
/// policy with `means: cpuset`, and restores the others. A unit has one call to systemd under way at most;
/// nothing waits for it. In a dry run nothing is asked or changed.
class Fences final : public Behaviour {
  public:
    Fences(Daemon& daemon, const Bus& bus)
        : shared_(daemon.shared()), tasks_(daemon.tasks()), properties_(bus) {}

    Slices end_pass() override;
    void begin_stop(bool is_handover) override;
    bool is_quiet() const override;
    void report(status::Overview& into) const override;
    std::vector<status::Finding> problems() const override;
    /// Adds the unit of a process under `means: cpuset`, by its control group, and that unit's state.
    void explain(const inventory::ProcessScan& scan, status::ProcessExplanation& into) const override;

  private:
    struct Unit {
        std::string folder;             ///< its control group
        std::set<std::string> policies; ///< with `means: cpuset`, that want it, by the last pass
        std::string policy;             ///< the last one that wanted it
        CpuSet cpus;                    ///< of that policy
        std::string state;              ///< "in place", or why not; "" until it was looked at
        std::string obstacle;           ///< why it has no fence; "": none
        bool is_called = false;         ///< systemd has not answered yet
        int foreign = 0;                ///< a process that is not under the policy; 0: none was found
    };
    void find_all();
    void look(const std::string& name, Unit& unit);
    [[nodiscard]] std::string obstacle_of(Unit& unit) const;
    [[nodiscard]] bool is_wanted(const Unit& unit) const;
    void ask(const std::string& name);
    void decide(const std::string& name, const std::expected<CpuSet, int>& present);
    void set(const std::string& name, const CpuSet& present, const planner::UndoPointer& before);
    void restore(const std::string& name, const CpuSet& original);
    void put_back(const std::string& name, const CpuSet& original);
    void finish(const std::string& name, std::string state, bool is_changed = false);

    Shared& shared_;
    Tasks& tasks_;
    std::map<std::string, Unit> units_;                          ///< by name
    std::set<std::pair<std::string, std::string>> without_unit_; ///< policies and groups that are of none
    std::vector<std::string> due_;                               ///< units to look at, the next one last
    bool is_stopping_ = false;
    UnitCpus properties_; ///< last: no answer comes once it has ended
};

/// All units are to be looked at, also those that only the undo journal knows.
void Fences::find_all() {
    for (auto& [name, unit] : units_)
        unit.policies.clear();
    without_unit_.clear();
    for (const auto& [policy, its_groups] : tasks_.groups()) {
        if (find_cpuset_policy(shared_.current, policy) == nullptr) continue;
        for (const auto& group : its_groups)
            if (auto place = policy::find_fence(group)) {
                auto& unit = units_[place->first];
                unit.folder = std::move(place->second);
                unit.policies.insert(policy);
            } else {
                without_unit_.emplace(policy, group);
            }
    }
    for (const auto& [pid, process] : tasks_.table().processes())
        if (const auto& policy = shared_.current->policy(process.policy);
            policy.means == policy::Means::cpuset && !tasks_.groups().contains(policy.name))
            without_unit_.emplace(policy.name, "/");
    for (const auto& entry : shared_.journal().queues())
        if (const auto* unit = std::get_if<machine::UnitCpuset>(&entry.subject))
            units_.try_emplace(unit->unit);
    due_.clear();
    for (const auto& [name, unit] : units_)
        due_.push_back(name);
}

Slices Fences::end_pass() {
    if (!shared_.acts() || is_stopping_) co_return;
    find_all();
    while (!due_.empty()) {
        const std::string name = std::move(due_.back());
        due_.pop_back();
        // The next pass comes back to one that systemd is being asked about.
        if (const auto found = units_.find(name); found != units_.end() && !found->second.is_called)
            look(name, found->second);
        co_yield pause;
    }
}

bool Fences::is_wanted(const Unit& unit) const {
    return !is_stopping_ && std::ranges::any_of(unit.policies, [&](const std::string& policy) {
        return find_cpuset_policy(shared_.current, policy) != nullptr && !shared_.releases.policy(policy);
    });
}

void Fences::look(const std::string& name, Unit& unit) {
    const machine::UnitCpuset subject{name};
    const bool has_record = shared_.journal().contains(subject);
    unit.obstacle.clear();
    if (is_wanted(unit)) {
        unit.policy = *unit.policies.begin();
        unit.obstacle = obstacle_of(unit);
        ask(name);
    } else if (has_record && !shared_.keeps(unit.policy)) {
        ask(name);
    } else {
        if (has_record) shared_.report(shared_.executor.part(subject, state::Standing::kept));
        units_.erase(name);
    }
}

/// Why the unit can have no fence; "": it can have one, of `unit.cpus`.
std::string Fences::obstacle_of(Unit& unit) const {
    const auto* policy = find_cpuset_policy(shared_.current, unit.policy);
    if (unit.policies.size() > 1) return "claimed by another policy too";
    if (!inventory::has_unified_cgroups(shared_.root.sys()))
        return "cpusets of units need the unified cgroup hierarchy";
    if (policy == nullptr || policy->allowed.empty()) return "its policy cannot be carried out here";
    unit.cpus = policy->allowed;
    const auto pids = processes_below(shared_.root.sys(), unit.folder);
    if (!pids) return "its processes cannot be read";
    const auto foreign = std::ranges::find_if(*pids, [&](int pid) {
        const auto* known = tasks_.table().find(pid);
        return known == nullptr || shared_.current->policy(known->policy).name != unit.policy;
    });
    const int pid = foreign == pids->end() ? 0 : *foreign;
    // A process forked a moment ago is not known yet: a fence in place waits for the next pass.
    const bool is_confirmed = std::exchange(unit.foreign, pid) == pid || unit.state != in_place;
    return pid != 0 && is_confirmed ? fmt::format("process {} of it is not under the policy", pid) : "";
}

/// Asks systemd what is set, and goes on when it has answered.
void Fences::ask(const std::string& name) {
    units_.at(name).is_called = true;
    properties_.read(name, [this, name](const auto& present) { decide(name, present); });
}

void Fences::decide(const std::string& name, const std::expected<CpuSet, int>& present) {
    auto& unit = units_.at(name);
    const machine::UnitCpuset subject{name};
    const auto record = shared_.journal().find(subject);
    const bool is_fence = is_wanted(unit) && unit.obstacle.empty();
    if (!present) {
        // systemd answers also for a unit that has gone, so nothing is known, and the record stays.
        if (!is_fence && record)
            shared_.log.warn(machine::to_string(machine::Subject(subject)) +
                                 " could not be put back: systemd does not answer",
                             "unit not put back");
        return finish(name, no_answer);
    }
    const bool is_ours =
        record && planner::is_still_ours(*record, *present, shared_.current.placements().online);
    if (!is_fence) {
        if (is_ours) return restore(name, record->original.cpus());
        // Another program has changed the unit since.
        if (record) shared_.report(shared_.executor.part(subject, state::Standing::back));
        return finish(name, unit.obstacle);
    }
    if (*present == unit.cpus) {
        if (record) shared_.report(shared_.executor.confirm(subject, *record, *present));
        return finish(name, in_place);
    }
    const auto* policy = find_cpuset_policy(shared_.current, unit.policy);
    const bool is_enforced = policy != nullptr && policy->policy->drift == policy::Drift::enforce;
    const bool is_confirmed = unit.state != no_answer;
    if (record && !is_ours && is_confirmed && !is_enforced)
        return finish(name, "another program has changed it");
    set(name, *present, record);
}

void Fences::set(const std::string& name, const CpuSet& present, const planner::UndoPointer& before) {
    const machine::UnitCpuset subject{name};
    const auto& unit = units_.at(name);
    machine::Setting original = before ? before->original : present;
    // CPUs of ours that were kept are no original.
    if (const auto* past = shared_.journal().find_past(subject); !before && past != nullptr)
        if (planner::is_still_ours(past->terms->undo, present, shared_.current.placements().online))
            original = past->terms->undo.original;
    const planner::Action action{subject, present, unit.cpus, unit.policy, {}, false, before};
    const auto written = shared_.executor.remember(action, original, present);
    if (!written) {
        shared_.log.error(written.error().to_string() + ": nothing is changed until it can be written");
        return finish(name, "the undo journal cannot be written");
    }
    properties_.write(name, unit.cpus, [this, name, action, before, record = *written](int code) {
        if (is_without_answer(code)) // it may be set: the record stays
            return finish(name, no_answer);
        if (code != 0) {
            shared_.report(shared_.executor.take_back(action.subject, before));
            shared_.log.warn(fmt::format("{} could not be set to {}: {}", machine::to_string(action.subject),
                                         action.to.to_string(), refusal(code)),
                             "unit refused");
            return finish(name, refusal(code));
        }
        shared_.report(shared_.executor.confirm(action.subject, *record, action.to));
        shared_.log.info(fmt::format("policy {}: {} was set to {}", action.policy,
                                     machine::to_string(action.subject), action.to.to_string()),
                         "units", {.message_id = placed_message, .policy = action.policy});
        finish(name, in_place, true);
    });
}

/// The kernel does not empty the cpuset of a group with tasks (seen with 6.1 and 6.12), and systemd passes
/// over that, so that the tasks would stay on the CPUs of the fence: all CPUs come first.
void Fences::restore(const std::string& name, const CpuSet& original) {
    if (!original.empty()) return put_back(name, original);
    const auto& topology = shared_.current->machine().topology;
    properties_.write(name, topology.present, [this, name](int) { put_back(name, {}); });
}

void Fences::put_back(const std::string& name, const CpuSet& original) {
    properties_.write(name, original, [this, name, original](int code) {
        const machine::UnitCpuset subject{name};
        const bool is_gone = code == ENOENT;
        if (code == 0 || is_gone) {
            const auto standing = is_gone ? state::Standing::gone : state::Standing::back;
            shared_.report(shared_.executor.part(subject, standing));
            return finish(name, units_.at(name).obstacle, !is_gone);
        }
        shared_.log.warn(fmt::format("{} could not be put back to \"{}\": {}",
                                     machine::to_string(machine::Subject(subject)), original.to_list(),
                                     refusal(code)),
                         "unit not put back");
        finish(name, refusal(code));
    });
}

void Fences::finish(const std::string& name, std::string state, bool is_changed) {
    auto& unit = units_.at(name);
    unit.is_called = false;
    unit.state = std::move(state);
    if (is_stopping_ && unit.state == in_place && !shared_.current->keeps_on_stop(unit.policy))
        return ask(name); // it was set meanwhile
    if (!is_stopping_ && is_changed) shared_.want_pass();
}

void Fences::begin_stop(bool is_handover) {
    due_.clear();
    if (is_handover) return; // an answer that is owed is taken as in a pass
    is_stopping_ = true;
    for (const auto& entry : shared_.journal().queues()) {
        const auto* subject = std::get_if<machine::UnitCpuset>(&entry.subject);
        if (subject == nullptr) continue;
        if (shared_.current->keeps_on_stop(entry.record->policy)) {
            shared_.report(shared_.executor.part(*subject, state::Standing::kept));
            continue;
        }
        auto& unit = units_[subject->unit];
        unit.policy = entry.record->policy;
        unit.obstacle.clear();
        if (!unit.is_called) ask(subject->unit);
    }
}

bool Fences::is_quiet() const {
    return due_.empty() &&
           std::ranges::none_of(units_, [](const auto& entry) { return entry.second.is_called; });
}

void Fences::report(status::Overview& into) const {
    for (const auto& [name, unit] : units_) {
        if (!is_wanted(unit)) continue;
        const auto& policy = *unit.policies.begin();
        const auto* resolved = shared_.current.placements().find(policy);
        into.units.push_back({name, policy, resolved == nullptr ? CpuSet{} : resolved->allowed,
                              unit.state.empty() ? not_yet : unit.state});
    }
}

std::vector<status::Finding> Fences::problems() const {
    std::vector<status::Finding> list;
    const bool is_possible = inventory::has_unified_cgroups(shared_.root.sys());
    for (const auto& [policy, group] : without_unit_)
        list.push_back(status::finding(is_possible ? status::Ailment::no_unit : status::Ailment::no_unified,
                                       policy, "control group " + group));
    for (const auto& [name, unit] : units_)
        if (is_wanted(unit) && !unit.state.empty() && unit.state != in_place)
            list.push_back(
                status::finding(is_possible ? status::Ailment::no_fence : status::Ailment::no_unified,
                                *unit.policies.begin(), name, {unit.state, name}));
    return list;
}

void Fences::explain(const inventory::ProcessScan& scan, status::ProcessExplanation& into) const {
    const auto place = policy::find_fence(scan.facts().cgroup());
    const auto unit = place ? units_.find(place->first) : units_.end();
    if (unit == units_.end() || !unit->second.policies.contains(into.policy)) return;
    into.fenced_unit = unit->first;
    into.fence_state = unit->second.state.empty() ? not_yet : unit->second.state;
}

} // namespace

void add_fences(Daemon& daemon, const Bus& bus) { daemon.add(std::make_unique<Fences>(daemon, bus)); }

} // namespace affinityd::behaviours

// SPDX-License-Identifier: Apache-2.0
// The manager's work on systemd units under policies with `means: cpuset`, and on memory under `memory:
// follow`.
#include "app/manager.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "policy/cgroup_path.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

using planner::UnitCpuset;

constexpr unsigned deepest_folder = 8; ///< control groups below a unit's own that are looked into

/// The control group of the unit itself out of a path in or below it.
std::string unit_folder(const std::string& cgroup, const std::string& unit) {
    const auto at = cgroup.find("/" + unit);
    return at == std::string::npos ? "" : cgroup.substr(0, at + 1 + unit.size());
}

/// A process in the control group or below it that is not under the policy; 0: there is none.
int find_stranger(const host::Dir& sys, const TaskTable& tasks, std::size_t policy, const std::string& folder,
                  unsigned depth) {
    const auto text = sys.read(folder + "/cgroup.procs");
    if (!text || !*text) return 0;
    for (const auto line : split(trim_text(**text), '\n')) {
        const auto pid = parse_number<int>(line);
        if (!pid) continue;
        const auto* known = tasks.find(*pid);
        if (known == nullptr || known->policy != policy) return *pid;
    }
    if (depth == 0) return 0;
    for (const auto& name : sys.list(folder).value_or(std::vector<std::string>{}))
        if (sys.exists(folder + "/" + name + "/cgroup.procs"))
            if (const int stranger = find_stranger(sys, tasks, policy, folder + "/" + name, depth - 1);
                stranger != 0)
                return stranger;
    return 0;
}

} // namespace

void Manager::learn_unit(KnownProcess& process, const std::string& cgroup) const {
    const auto unit = policy::parse_cgroup_path(cgroup).unit;
    const bool is_users = cgroup.find("/user@") != std::string::npos; // of another manager than PID 1
    const bool has_property = unit.ends_with(".service") || unit.ends_with(".scope");
    process.unit = is_users || !has_property || unit == "init.scope" ? "" : unit;
    process.unit_folder = process.unit.empty() ? "" : unit_folder(cgroup, process.unit);
}

void Manager::handle_units() {
    units_.clear();
    unit_problems_.clear();
    if (!parts_.enforcer.acts()) return;
    const auto& policies = world_->policies().policies;
    for (const auto& [pid, process] : tasks_.processes()) {
        const auto& policy = policies[process.policy];
        if (policy.means != policy::Means::cpuset || is_released(pid, process.policy)) continue;
        if (process.unit.empty()) {
            unit_problems_.push_back(
                {policy.name, process.comm,
                 fmt::format("process {} is in no unit of the system's: affinity alone is used", pid)});
            continue;
        }
        const auto [at, is_new] =
            units_.try_emplace(process.unit, UnderCpuset{process.policy, process.unit_folder, {}, true});
        if (is_new || at->second.policy == process.policy) continue;
        at->second.state = "claimed by another policy too";
        at->second.keep = false;
    }
    bool changed = false;
    for (auto& [name, unit] : units_) {
        if (unit.state.empty()) unit.state = fence(name, unit, changed);
        if (unit.state != "in place")
            unit_problems_.push_back(
                {policies[unit.policy].name, name, unit.state + ": affinity alone is used"});
    }
    if (changed) waits_(Urgency::soon); // masks were cut to the old fence, or widened by the new one
}

std::string Manager::fence(const std::string& name, UnderCpuset& unit, bool& changed) {
    const auto& sys = parts_.root.sys();
    if (!sys.exists("fs/cgroup/cgroup.controllers"))
        return "cpusets of units need the unified cgroup hierarchy";
    if (const int stranger =
            find_stranger(sys, tasks_, unit.policy, "fs/cgroup" + unit.folder, deepest_folder);
        stranger != 0) {
        unit.keep = false;
        return fmt::format("process {} of it is not under the policy", stranger);
    }
    const auto& wanted = world_->placements().policies[unit.policy].allowed;
    const auto& policy = world_->policies().policies[unit.policy];
    const UnitCpuset subject{name};
    const auto present = parts_.enforcer.present(subject);
    if (!present) return "systemd does not answer for it";
    if (wanted.empty() || *present == wanted) return "in place";
    const auto* held = parts_.journal.find(subject);
    if (held != nullptr && held->asked == wanted && policy.drift != policy::Drift::enforce)
        return "somebody else has changed it";
    const auto applied = executor_.run({subject, *present, wanted, policy.name, "means: cpuset", false},
                                       world_->machine().topology);
    if (!enforcer::took_effect(applied.outcome)) return std::string(to_string(applied.outcome));
    changed = true;
    return "in place";
}

void Manager::follow_with_memory(KnownProcess& process) {
    const auto& nodes = world_->machine().topology.nodes;
    if (world_->policies().policies[process.policy].memory != policy::Memory::follow || nodes.size() < 2)
        return;
    CpuSet cpus;
    for (const auto& [tid, thread] : process.threads)
        cpus |= thread.present;
    enforcer::MemoryMove move{process.id, {}, {}};
    for (const auto& node : nodes)
        (node.cpus.intersects(cpus) ? move.to : move.from).push_back(node.id);
    if (move.to == process.memory_nodes) return;
    process.memory_nodes = move.to;
    process.memory_state = "waits";
    // One that may run everywhere is left where it is: there is no better place.
    if (move.to.empty() || move.from.empty())
        process.memory_state = "stays";
    else
        parts_.enforcer.move_memory(std::move(move));
}

void Manager::hear_of_memory() {
    for (const auto& [move, code, left, took_ms] : parts_.enforcer.take_moved()) {
        auto* process = tasks_.find(move.process.tid);
        if (process == nullptr || process->id != move.process) continue;
        process->memory_state = code == 0 ? fmt::format("moved in {} ms, {} pages stayed", took_ms, left)
                                          : "not moved: " + std::generic_category().message(code);
        if (code != 0)
            parts_.log.warn(fmt::format("memory of process {} ({}): {}", move.process.tid, process->comm,
                                        process->memory_state));
    }
}

} // namespace affinityd::app

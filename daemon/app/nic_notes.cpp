// SPDX-License-Identifier: Apache-2.0
#include "app/nic_notes.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

using policy::Model;

/// True if `full` has no interface to go by.
bool acts_as_process(const World& world, std::size_t policy) {
    const auto& resolved = world.placements().policies[policy];
    return resolved.active && resolved.policy->model == Model::full && resolved.nics.empty();
}

constexpr const char* as_process = "affinity: full acts as process";

struct Kept {
    std::size_t processes = 0, lanes = 0;
    int first = 0;
};

/// The processes of a policy whose cpuset has not all lanes, and how many lanes the first of them may use.
std::map<std::size_t, Kept> kept_off_lanes(const World& world, const TaskTable& tasks) {
    std::map<std::size_t, Kept> kept;
    for (const auto& [pid, process] : tasks.processes()) {
        const auto& resolved = world.placements().policies[process.policy];
        if (!resolved.active || process.is_elsewhere || !process.cpuset.cpus) continue;
        const auto usable = static_cast<std::size_t>(
            std::ranges::count_if(resolved.all_lanes, [&](const planner::Slot& lane) {
                return lane.cpus.intersects(*process.cpuset.cpus);
            }));
        if (usable == resolved.all_lanes.size()) continue;
        auto& of_policy = kept[process.policy];
        if (of_policy.processes++ == 0 || pid < of_policy.first) {
            of_policy.first = pid;
            of_policy.lanes = usable;
        }
    }
    return kept;
}

} // namespace

std::string nic_note(const World& world, const KnownProcess& process) {
    const auto& policy = world.policy(process.policy);
    if (policy.model != Model::full && policy.model != Model::irq) return {};
    std::string why;
    if (process.is_elsewhere)
        why = "it is in another network namespace: its NICs are not known";
    else if (policy.nics_auto && process.nics.empty())
        why = "no socket of it has named a NIC";
    if (why.empty()) return {};
    const bool is_alone = process.is_elsewhere && policy.model == Model::full;
    return is_alone || acts_as_process(world, process.policy) ? fmt::format("{}; {}", why, as_process) : why;
}

std::string nic_note(const World& world, std::size_t policy, std::size_t processes) {
    const auto& names = world.policy(policy).nics;
    const auto is_named = [&](const netdev::Nic& nic) {
        return std::ranges::any_of(names, [&](const auto& pattern) {
            return nic.is_called([&](std::string_view name) { return pattern.matches(name); });
        });
    };
    if (!world.policy(policy).nics_auto && !names.empty() &&
        std::ranges::none_of(world.machine().nics, is_named))
        return "no interface here is named like its nics: see affinityctl check";
    if (processes == 0 || !world.policy(policy).nics_auto || !acts_as_process(world, policy)) return {};
    return fmt::format("no NIC is known to serve its processes: {}", as_process);
}

std::vector<planner::Problem> nic_problems(const World& world, const TaskTable& tasks) {
    std::map<std::size_t, std::vector<int>> elsewhere;
    for (const auto& [pid, process] : tasks.processes())
        if (process.is_elsewhere) elsewhere[process.policy].push_back(pid);
    std::vector<planner::Problem> problems;
    for (const auto& [policy, pids] : elsewhere) {
        auto text = fmt::format("process {}{} in another network namespace: which NICs serve {} is not known",
                                pids.front(),
                                pids.size() == 1 ? " is" : fmt::format(" and {} more are", pids.size() - 1),
                                pids.size() == 1 ? "it" : "them");
        if (world.policy(policy).model == Model::full) text += std::string("; ") + as_process;
        problems.push_back(
            {world.policy(policy).name, "nics", std::move(text), "name the interfaces in nics"});
    }
    for (const auto& [policy, kept] : kept_off_lanes(world, tasks))
        problems.push_back(
            {world.policy(policy).name, "nics",
             fmt::format("the cpuset of process {}{} has {} of the {} places for workers near the NIC",
                         kept.first,
                         kept.processes == 1 ? "" : fmt::format(" (and of {} more)", kept.processes - 1),
                         kept.lanes, world.placements().policies[policy].all_lanes.size()),
             "give the policy cpus that the unit's AllowedCPUs= has"});
    return problems;
}

} // namespace affinityd::app

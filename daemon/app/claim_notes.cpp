// SPDX-License-Identifier: Apache-2.0
#include "app/claim_notes.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

/// A unit whose name has no ending, which matches nothing; "": there is none.
std::string unit_without_ending(const policy::Selector& selector) {
    for (const auto& child : selector.children)
        if (auto name = unit_without_ending(child); !name.empty()) return name;
    if (selector.op != policy::Selector::Op::test ||
        selector.condition.field != policy::Condition::Field::unit)
        return {};
    for (const auto& pattern : selector.condition.patterns)
        if (pattern.is_literal() && pattern.text().find('.') == std::string::npos) return pattern.text();
    return {};
}

} // namespace

std::string match_note(const World& world, const TaskTable& tasks, const state::Journal& journal,
                       std::size_t index) {
    const auto& policy = world.policy(index);
    if (policy.model == policy::Model::none || policy.model == policy::Model::irq) return {};
    if (!world.has_seen(policy.name)) {
        const auto unit = unit_without_ending(policy.match);
        return unit.empty() ? "no process has matched it yet: see affinityctl check"
                            : fmt::format("no process can match it: write unit: {}.service", unit);
    }
    std::size_t count = 0;
    CpuSet own;
    for (const auto& [pid, process] : tasks.processes()) {
        if (process.policy != index) continue;
        const auto record = journal.find(planner::TaskMask{process.id, pid, {}});
        if (!record) continue;
        const CpuSet possible =
            process.cpuset.cpus.value_or(world.placements().online) & world.placements().online;
        if (record->original.cpus().contains(possible)) continue;
        own |= record->original.cpus();
        ++count;
    }
    if (count == 0) return {};
    return fmt::format(
        "{} of its processes had CPUs of {} own before ({}: CPUAffinity= of a unit, or taskset), which "
        "it replaces; prior: keep leaves them",
        count, count == 1 ? "its" : "their", own.to_list());
}

bool is_idle(const World& world, const TaskTable& tasks, std::string_view policy) {
    return std::ranges::none_of(tasks.processes(), [&](const auto& entry) {
        return world.policy(entry.second.policy).name == policy;
    });
}

std::vector<planner::Problem> idle_claims(const World& world, const TaskTable& tasks) {
    const auto& placements = world.placements();
    if (placements.claims.empty()) return {};
    std::set<std::string_view> in_use;
    for (const auto& [pid, process] : tasks.processes())
        in_use.insert(world.policy(process.policy).name);
    std::vector<planner::Problem> problems;
    for (const auto& claim : placements.claims) {
        const auto& policy = *placements.find(claim.policy)->policy;
        if (policy.model == policy::Model::irq || policy.exclusive != policy::Exclusive::always ||
            in_use.contains(claim.policy))
            continue;
        const bool is_one = claim.cpus.count() == 1;
        problems.push_back({claim.policy, "exclusive",
                            fmt::format("CPU{} {} {} barred to all others, and no process is under this "
                                        "policy now",
                                        is_one ? "" : "s", claim.cpus.to_list(), is_one ? "is" : "are"),
                            "start its application, or affinityctl release " + claim.policy});
    }
    return problems;
}

} // namespace affinityd::app

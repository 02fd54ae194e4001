// SPDX-License-Identifier: Apache-2.0
#include "app/claim_notes.hpp"

#include <set>
#include <string_view>

#include <fmt/format.h>

namespace affinityd::app {

std::vector<planner::Problem> idle_claims(const World& world, const TaskTable& tasks) {
    const auto& placements = world.placements();
    if (placements.claims.empty()) return {};
    std::set<std::string_view> in_use;
    for (const auto& [pid, process] : tasks.processes())
        in_use.insert(world.policy(process.policy).name);
    std::vector<planner::Problem> problems;
    for (const auto& claim : placements.claims) {
        const bool has_tasks = placements.find(claim.policy)->policy->model != policy::Model::irq;
        if (!has_tasks || in_use.contains(claim.policy)) continue;
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

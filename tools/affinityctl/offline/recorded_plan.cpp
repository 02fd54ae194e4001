// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/recorded_plan.hpp"

#include "affinityctl/offline/still_machine.hpp"
#include "base/counted.hpp"
#include "planner/redeal.hpp"
#include "status/json.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using nlohmann::json;
namespace planner = affinityd::planner;
using affinityd::policy::PolicySet;

/// What would change, and where everything under policy would be then.
struct Outcome {
    json actions = json::array();
    json processes = json::array(); ///< as in a status, with policy and threads only
    json queues = json::array();
    std::map<std::string, std::size_t> unread; ///< settings that are not recorded, by policy
};

Outcome outcome_of(StillMachine& still) {
    Outcome outcome;
    const auto add = [&](const planner::Action& action) {
        outcome.actions.push_back(affinityd::status::to_json(action));
    };
    for (const auto& process : still.processes()) {
        json placed = json::array();
        still.plan(process, [&](const auto& thread, const planner::ThreadPlan& plan) {
            if (plan.action) add(*plan.action);
            if (plan.target)
                placed.push_back(
                    {{"tid", thread.id.tid}, {"comm", thread.comm}, {"wanted", plan.target->mask.to_list()}});
        });
        if (process.policy)
            outcome.processes.push_back({{"pid", process.scan.id().tid},
                                         {"policy", still.policies().policies[*process.policy].name},
                                         {"threads", std::move(placed)}});
    }
    for (const auto& target : still.placements().queues) {
        if (target.rank > 0) continue; // another interface on the same line decides
        const auto present = still.present(target.subject);
        if (!present) {
            ++outcome.unread[target.policy];
            continue;
        }
        if (const auto action = planner::plan_queue(still.planning(), target, *present)) add(*action);
        json queue = affinityd::status::to_json(target.subject);
        queue["policy"] = target.policy;
        queue["wanted"] = target.wanted.to_string();
        outcome.queues.push_back(std::move(queue));
    }
    return outcome;
}

/// Processes of which the recording does not say whether a policy wants them, by policy and condition.
std::map<std::pair<std::string, std::string>, std::size_t> undecided(const StillMachine& still) {
    std::map<std::pair<std::string, std::string>, std::size_t> counts;
    for (const auto& process : still.processes())
        for (const auto& verdict : still.consider(process))
            if (!verdict.matched && !still.is_recorded(process, verdict.field))
                ++counts[{still.policies().policies[verdict.policy].name, verdict.field}];
    return counts;
}

/// Notes on all that is not known from files alone.
json notes_of(const StillMachine& still, const Outcome& outcome) {
    json notes = json::array();
    const auto add = [&](const std::string& policy, const std::string& message) {
        json note{{"policy", policy}, {"message", message}};
        if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
    };
    for (const auto& part : still.missing_parts())
        add("", "not recorded, and nothing is planned for them: " + part);
    for (const auto& [key, count] : undecided(still))
        add(key.first,
            fmt::format("{} of {} not recorded: whether it matches is not known", key.second,
                        affinityd::counted(count, "process", "processes") + (count == 1 ? " is" : " are")));
    for (const auto& [policy, count] : outcome.unread)
        add(policy, affinityd::counted(count, "setting") + " of its interrupts and queues" +
                        (count == 1 ? " is" : " are") +
                        " not recorded: whether they would change is not known");
    for (const auto& process : still.processes())
        if (process.policy && needs_sockets(still.policies().policies[*process.policy]))
            add(still.policies().policies[*process.policy].name,
                "nics: auto: which interfaces serve its processes is known once they run under it; "
                "interrupts and lanes are left out here");
    return notes;
}

json policies_of(const planner::Placements& placements) {
    json policies = json::array();
    for (const auto& resolved : placements.policies)
        policies.push_back({{"name", resolved.policy->name},
                            {"affinity", to_string(resolved.policy->model)},
                            {"cpus", resolved.allowed.to_list()}});
    return policies;
}

} // namespace

affinityd::Result<json> plan_recording(const PolicySet& policies, const std::string& folder,
                                       affinityd::machine::KnownLatencies latencies) {
    auto read = StillMachine::read(policies, folder, std::move(latencies));
    if (!read) return std::unexpected(read.error());
    auto& still = **read;
    json problems = json::array();
    for (const auto& problem : still.placements().problems)
        problems.push_back(affinityd::status::to_json(problem));
    auto outcome = outcome_of(still);
    auto notes = notes_of(still, outcome);
    planner::Redeal redeal(still.placements(), still.assignments());
    redeal.measure([] { return false; });
    return json{{"actions", std::move(outcome.actions)},
                {"problems", std::move(problems)},
                {"notes", std::move(notes)},
                {"policies", policies_of(still.placements())},
                {"processes", std::move(outcome.processes)},
                {"queues", std::move(outcome.queues)},
                {"balance", affinityd::status::to_json(redeal.goodness())}};
}

} // namespace affinityctl

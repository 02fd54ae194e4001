// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/recorded_plan.hpp"

#include "affinityctl/offline/still_machine.hpp"
#include "planner/redeal.hpp"
#include "status/json.hpp"

#include <algorithm>
#include <utility>

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
        if (!present) continue;
        if (const auto action = planner::plan_queue(still.planning(), target, *present)) add(*action);
        json queue = affinityd::status::to_json(target.subject);
        queue["policy"] = target.policy;
        queue["wanted"] = target.wanted.to_string();
        outcome.queues.push_back(std::move(queue));
    }
    return outcome;
}

/// What cannot be known without the daemon.
json notes_of(const StillMachine& still) {
    json notes = json::array();
    for (const auto& process : still.processes()) {
        if (!process.policy) continue;
        const auto& policy = still.policies().policies[*process.policy];
        json note{{"policy", policy.name},
                  {"message", "nics: auto: which interfaces serve its processes is known once they run under "
                              "it; interrupts and lanes are left out here"}};
        if (needs_sockets(policy) && std::ranges::find(notes, note) == notes.end())
            notes.push_back(std::move(note));
    }
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
    planner::Redeal redeal(still.placements(), still.assignments());
    redeal.measure([] { return false; });
    return json{{"actions", std::move(outcome.actions)},
                {"problems", std::move(problems)},
                {"notes", notes_of(still)},
                {"policies", policies_of(still.placements())},
                {"processes", std::move(outcome.processes)},
                {"queues", std::move(outcome.queues)},
                {"balance", affinityd::status::to_json(redeal.goodness())}};
}

} // namespace affinityctl

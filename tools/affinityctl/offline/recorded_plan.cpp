// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/recorded_plan.hpp"

#include "host/root.hpp"
#include "inventory/lookup.hpp"
#include "inventory/pid_stream.hpp"
#include "inventory/process_scan.hpp"
#include "machine/queue_files.hpp"
#include "machine/reader.hpp"
#include "planner/matcher.hpp"
#include "planner/plan.hpp"
#include "planner/redeal.hpp"
#include "status/json.hpp"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace affinityctl {

namespace {

using nlohmann::json;
namespace planner = affinityd::planner;
namespace inventory = affinityd::inventory;
namespace machine = affinityd::machine;
using affinityd::host::Root;
using affinityd::policy::PolicySet;

/// Nothing was ever changed on a recorded machine.
struct Untouched final : planner::UndoLookup {
    [[nodiscard]] std::optional<planner::UndoRecord> find(const machine::Subject&) const override {
        return std::nullopt;
    }
};

/// Parents have smaller numbers than their children, unless numbers have wrapped around: seen in order, most
/// are known in time.
class SeenLineage final : public planner::Lineage {
  public:
    SeenLineage(const Root& root, const PolicySet& policies) : root_(root), policies_(policies) {}

    void add(int pid, std::size_t policy) { seen_[pid] = policy; }

    [[nodiscard]] std::vector<std::string>
    ancestor_policies(const inventory::ProcessFacts& process) const override {
        std::vector<std::string> names;
        for (const int pid : inventory::read_ancestors(root_, process.parent()))
            if (const auto at = seen_.find(pid); at != seen_.end())
                names.push_back(policies_.policies[at->second].name);
        return names;
    }

  private:
    const Root& root_;
    const PolicySet& policies_;
    std::map<int, std::size_t> seen_;
};

struct Seen {
    inventory::ProcessScan scan;
    std::optional<std::size_t> policy;
    std::vector<inventory::Thread> threads;
};

/// All processes with the policy and the threads of each.
affinityd::Result<std::vector<Seen>> match_all(const Root& root, const PolicySet& policies,
                                               inventory::FactSources& sources) {
    const auto pids = inventory::list_pids(root);
    if (!pids) return std::unexpected(pids.error());
    const planner::Matcher matcher(policies);
    SeenLineage lineage(root, policies);
    std::vector<Seen> all;
    for (const int pid : *pids) {
        auto scan = inventory::ProcessScan::open(root, pid, &sources).value_or(std::nullopt);
        if (!scan) continue;
        const auto policy = matcher.match(scan->facts(), lineage);
        if (policy) lineage.add(pid, *policy);
        auto threads = inventory::read_threads(root, pid).value_or(std::vector<inventory::Thread>{});
        all.push_back({std::move(*scan), policy, std::move(threads)});
    }
    return all;
}

/// Interfaces of each policy: the named ones, as a recording has no sockets that would tell of others.
using Interfaces = std::vector<planner::NicNames>;

planner::NicUsage usage_of(const std::vector<Seen>& all, const PolicySet& policies, const Interfaces& nics) {
    planner::NicUsage usage;
    for (const auto& process : all) {
        if (!process.policy) continue;
        const auto& policy = policies.policies[*process.policy];
        const auto tasks = planner::distributes_threads(policy.placement) ? process.threads.size() : 1;
        const auto& named = nics[*process.policy];
        if (!named.empty())
            usage[policy.name][named.size() == 1 ? named : planner::NicNames{}] +=
                static_cast<unsigned>(tasks);
    }
    return usage;
}

std::optional<machine::Setting> read_present(const Root& root, const machine::Subject& subject) {
    return std::visit(
        [&](const auto& queue) -> std::optional<machine::Setting> {
            if constexpr (requires { machine::read_setting(root, queue); })
                return machine::read_setting(root, queue).value_or(std::nullopt);
            return std::nullopt;
        },
        subject);
}

/// What would change, and where everything under policy would be then.
struct Outcome {
    json actions = json::array();
    json processes = json::array(); ///< as in a status, with policy and threads only
    json queues = json::array();
};

Outcome outcome_of(const Root& root, const planner::Planning& planning, const std::vector<Seen>& all,
                   const Interfaces& nics, inventory::FactSources& sources) {
    Outcome outcome;
    const auto add = [&](const planner::Action& action) {
        outcome.actions.push_back(affinityd::status::to_json(action));
    };
    for (const auto& [scan, policy, threads] : all) {
        json placed = json::array();
        const planner::ProcessView view{scan.id(), policy, policy ? &nics[*policy] : nullptr,
                                        policy ? sources.cpuset(scan.id().tid) : nullptr};
        planner::plan_process(planning, view, threads,
                              [&](const inventory::Thread& thread, const planner::ThreadPlan& plan) {
                                  if (plan.action) add(*plan.action);
                                  if (plan.target)
                                      placed.push_back({{"tid", thread.id.tid},
                                                        {"comm", thread.comm},
                                                        {"wanted", plan.target->mask.to_list()}});
                              });
        if (policy)
            outcome.processes.push_back({{"pid", scan.id().tid},
                                         {"policy", planning.placements.policies[*policy].policy->name},
                                         {"threads", std::move(placed)}});
    }
    for (const auto& target : planning.placements.queues) {
        if (target.rank > 0) continue; // another interface on the same line decides
        const auto present = read_present(root, target.subject);
        if (!present) continue;
        if (const auto action = planner::plan_queue(planning, target, *present)) add(*action);
        json queue = affinityd::status::to_json(target.subject);
        queue["policy"] = target.policy;
        queue["wanted"] = target.wanted.to_string();
        outcome.queues.push_back(std::move(queue));
    }
    return outcome;
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

affinityd::Result<json> plan_recording(const PolicySet& policies, const std::string& folder) {
    const auto root = Root::open(folder);
    if (!root) return std::unexpected(root.error());
    const auto recorded = machine::read_machine(*root);
    if (!recorded) return std::unexpected(recorded.error());
    inventory::FactSources sources(*root, inventory::ask_name_service);
    const auto all = match_all(*root, policies, sources);
    if (!all) return std::unexpected(all.error());
    Interfaces nics;
    for (const auto& policy : policies.policies)
        nics.push_back(planner::policy_nics(policy, *recorded, {}));
    const auto placements = planner::compile(policies, *recorded, usage_of(*all, policies, nics));
    const Untouched undo;
    planner::Assignments assignments;
    json problems = json::array();
    for (const auto& problem : placements.problems)
        problems.push_back(affinityd::status::to_json(problem));
    auto outcome = outcome_of(*root, {placements, assignments, undo}, *all, nics, sources);
    planner::Redeal redeal(placements, assignments);
    redeal.measure([] { return false; });
    return json{
        {"actions", std::move(outcome.actions)}, {"problems", std::move(problems)},
        {"policies", policies_of(placements)},   {"processes", std::move(outcome.processes)},
        {"queues", std::move(outcome.queues)},   {"balance", affinityd::status::to_json(redeal.goodness())}};
}

} // namespace affinityctl

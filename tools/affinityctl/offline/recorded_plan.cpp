// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/recorded_plan.hpp"

#include "app/json.hpp"
#include "app/world.hpp"
#include "host/root.hpp"
#include "inventory/lookup.hpp"
#include "inventory/pid_stream.hpp"
#include "inventory/process_scan.hpp"
#include "planner/matcher.hpp"
#include "planner/plan.hpp"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace affinityctl {

namespace {

using nlohmann::json;
namespace planner = affinityd::planner;
namespace inventory = affinityd::inventory;

struct Untouched final : planner::Memory {
    [[nodiscard]] const planner::Held* find(const planner::Subject&) const override { return nullptr; }
};

/// Parents have smaller numbers than their children, but for numbers that went round: seen in order, most are
/// known in time.
class SeenLineage final : public planner::Lineage {
  public:
    SeenLineage(const affinityd::host::Root& root, const affinityd::policy::PolicySet& policies)
        : root_(root), policies_(policies) {}

    void add(int pid, std::size_t policy) { seen_[pid] = policy; }

    [[nodiscard]] std::vector<std::string>
    ancestor_policies(const inventory::ProcessFacts& process) const override {
        constexpr unsigned deepest = 64; // also ends a loop in a recording
        std::vector<std::string> names;
        int pid = process.parent();
        for (unsigned depth = 0; pid > 0 && depth < deepest; ++depth) {
            if (const auto at = seen_.find(pid); at != seen_.end())
                names.push_back(policies_.policies[at->second].name);
            pid = inventory::read_parent(root_, pid).value_or(0);
        }
        return names;
    }

  private:
    const affinityd::host::Root& root_;
    const affinityd::policy::PolicySet& policies_;
    std::map<int, std::size_t> seen_;
};

struct Seen {
    inventory::ProcessScan head;
    std::optional<std::size_t> policy;
};

/// All processes with the policy of each.
std::vector<Seen> match_all(const affinityd::host::Root& root, const std::vector<int>& pids,
                            const affinityd::policy::PolicySet& policies, inventory::FactSources& sources) {
    const planner::Matcher matcher(policies);
    SeenLineage lineage(root, policies);
    std::vector<Seen> all;
    for (const int pid : pids) {
        auto head = inventory::ProcessScan::open(root, pid, &sources).value_or(std::nullopt);
        if (!head) continue;
        const auto policy = matcher.match(head->facts(), lineage);
        if (policy) lineage.add(pid, *policy);
        all.push_back({std::move(*head), policy});
    }
    return all;
}

/// Interfaces of each policy: the named ones, for a recording has no sockets that would tell.
using Interfaces = std::vector<std::vector<std::string>>;

planner::Serving serving_of(const std::vector<Seen>& all, const affinityd::host::Root& root,
                            const affinityd::policy::PolicySet& policies, const Interfaces& nics) {
    planner::Serving serving;
    for (const auto& [head, index] : all) {
        if (!index) continue;
        const auto& policy = policies.policies[*index];
        const auto threads = planner::deals_threads(policy.placement)
                                 ? inventory::read_threads(root, head.id().tid)
                                       .value_or(std::vector<inventory::Thread>{})
                                       .size()
                                 : 1;
        for (const auto& nic : nics[*index])
            serving[policy.name][nic] += static_cast<unsigned>(threads);
    }
    return serving;
}

} // namespace

affinityd::Result<json> plan_recording(const affinityd::policy::PolicySet& policies,
                                       const std::string& folder) {
    const auto root = affinityd::host::Root::open(folder);
    if (!root) return std::unexpected(root.error());
    const auto machine = affinityd::app::read_machine(*root);
    if (!machine) return std::unexpected(machine.error());
    const auto pids = inventory::list_pids(*root);
    if (!pids) return std::unexpected(pids.error());

    inventory::FactSources sources(*root, inventory::ask_name_service);
    const auto all = match_all(*root, *pids, policies, sources);
    Interfaces nics;
    for (const auto& policy : policies.policies)
        nics.push_back(planner::policy_nics(policy, *machine, {}));
    const auto placements = planner::compile(policies, *machine, serving_of(all, *root, policies, nics));
    const Untouched memory;
    planner::Assignments seats;
    json actions = json::array();
    for (const auto& [head, policy] : all) {
        const auto* cpuset = policy ? sources.cpuset(head.id().tid) : nullptr;
        const auto threads =
            inventory::read_threads(*root, head.id().tid).value_or(std::vector<inventory::Thread>{});
        for (std::size_t i = 0; i < threads.size(); ++i) {
            const planner::Unit unit{head.id(), &threads[i], static_cast<unsigned>(i),
                                     policy ? &nics[*policy] : nullptr, cpuset};
            const auto plan = planner::plan_thread(placements, seats, policy, unit, memory);
            if (plan.action) actions.push_back(affinityd::app::to_json(*plan.action));
        }
    }
    for (const auto& action : planner::plan_queues(placements, memory))
        actions.push_back(affinityd::app::to_json(action));
    json problems = json::array();
    for (const auto& problem : placements.problems)
        problems.push_back(affinityd::app::to_json(problem));
    return json{{"actions", std::move(actions)}, {"problems", std::move(problems)}};
}

} // namespace affinityctl

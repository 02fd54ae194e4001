// SPDX-License-Identifier: Apache-2.0
#include "recorded_plan.hpp"

#include "host/root.hpp"
#include "inventory/head.hpp"
#include "inventory/scan.hpp"
#include "irq/reader.hpp"
#include "netdev/reader.hpp"
#include "planner/flow_counts.hpp"
#include "planner/matcher.hpp"
#include "planner/plan.hpp"
#include "topology/reader.hpp"

#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace affinityctl {

namespace {

using nlohmann::json;
namespace planner = affinityd::planner;
namespace inventory = affinityd::inventory;

struct Untouched final : planner::Memory {
    [[nodiscard]] const planner::Held* find(const planner::Subject&) const override { return nullptr; }
};

/// Parents have smaller numbers than their children, but for numbers that went round: seen in order, most are known in time.
class SeenLineage final : public planner::Lineage {
  public:
    SeenLineage(const affinityd::host::Root& root, const affinityd::policy::PolicySet& policies) : root_(root), policies_(policies) {}

    void add(int pid, std::size_t policy) { seen_[pid] = policy; }

    [[nodiscard]] std::vector<std::string> ancestor_policies(const inventory::ProcessFacts& process) const override {
        constexpr unsigned deepest = 64; // also ends a loop in a recording
        std::vector<std::string> names;
        int pid = process.parent();
        for (unsigned depth = 0; pid > 0 && depth < deepest; ++depth) {
            if (const auto at = seen_.find(pid); at != seen_.end()) names.push_back(policies_.policies[at->second].name);
            pid = inventory::read_parent(root_, pid).value_or(0);
        }
        return names;
    }

  private:
    const affinityd::host::Root& root_;
    const affinityd::policy::PolicySet& policies_;
    std::map<int, std::size_t> seen_;
};

struct SubjectJson {
    json operator()(const planner::TaskMask& mask) const {
        return {{"kind", "task"}, {"pid", mask.pid}, {"tid", mask.task.tid}, {"comm", mask.comm}};
    }
    json operator()(const planner::IrqMask& mask) const {
        return {{"kind", "irq"}, {"irq", mask.irq}, {"label", mask.label}, {"device", mask.device}};
    }
    json operator()(const planner::SteeringMask& mask) const {
        return {{"kind", "steering"}, {"nic", mask.nic}, {"queue", mask.queue}};
    }
    json operator()(const planner::UnitCpuset& cpuset) const { return {{"kind", "unit"}, {"unit", cpuset.unit}}; }
};

json to_json(const planner::Action& action) {
    json value = std::visit(SubjectJson{}, action.subject);
    value.update({{"from", affinityd::planner::mask_text(action.subject, action.from)},
                  {"to", affinityd::planner::mask_text(action.subject, action.to)},
                  {"policy", action.policy},
                  {"reason", action.reason},
                  {"restore", action.restore}});
    return value;
}

affinityd::Result<planner::Machine> read_machine(const affinityd::host::Root& root) {
    auto topology = affinityd::topology::read_topology(root);
    if (!topology) return std::unexpected(topology.error());
    auto nics = affinityd::netdev::read_nics(root);
    if (!nics) return std::unexpected(nics.error());
    auto irqs = affinityd::irq::read_interrupts(root);
    if (!irqs) return std::unexpected(irqs.error());
    return planner::Machine{std::move(*topology), std::move(*nics), std::move(*irqs)};
}

struct Seen {
    inventory::Head head;
    std::optional<std::size_t> policy;
};

/// All processes with the policy of each.
std::vector<Seen> match_all(const affinityd::host::Root& root, const std::vector<int>& pids, const affinityd::policy::PolicySet& policies,
                            inventory::FactSources& sources) {
    const planner::Matcher matcher(policies);
    SeenLineage lineage(root, policies);
    std::vector<Seen> all;
    for (const int pid : pids) {
        auto head = inventory::read_head(root, pid, &sources);
        if (!head) continue;
        const auto policy = matcher.match(*head->facts, lineage);
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
        const auto threads = planner::deals_threads(policy.placement) ? inventory::read_threads(root, head.id.tid).size() : 1;
        for (const auto& nic : nics[*index])
            serving[policy.name][nic] += static_cast<unsigned>(threads);
    }
    return serving;
}

} // namespace

affinityd::Result<json> plan_recording(const affinityd::policy::PolicySet& policies, const std::string& folder) {
    const auto root = affinityd::host::Root::open(folder);
    if (!root) return std::unexpected(root.error());
    const auto machine = read_machine(*root);
    if (!machine) return std::unexpected(machine.error());
    const auto pids = inventory::list_pids(*root);
    if (!pids) return std::unexpected(pids.error());

    inventory::FactSources sources(*root);
    const auto all = match_all(*root, *pids, policies, sources);
    Interfaces nics;
    for (const auto& policy : policies.policies)
        nics.push_back(planner::policy_nics(policy, *machine, {}));
    const auto placements = planner::compile(policies, *machine, serving_of(all, *root, policies, nics));
    const Untouched memory;
    planner::Assignments seats;
    json actions = json::array();
    for (const auto& [head, policy] : all) {
        const auto* cpuset = policy ? sources.cpuset(head.id.tid) : nullptr;
        const auto threads = inventory::read_threads(*root, head.id.tid);
        for (std::size_t i = 0; i < threads.size(); ++i) {
            const planner::Unit unit{head.id, &threads[i], static_cast<unsigned>(i), policy ? &nics[*policy] : nullptr, cpuset};
            const auto plan = planner::plan_thread(placements, seats, policy, unit, memory);
            if (plan.action) actions.push_back(to_json(*plan.action));
        }
    }
    for (const auto& action : planner::plan_queues(placements, memory))
        actions.push_back(to_json(action));
    json problems = json::array();
    for (const auto& problem : placements.problems)
        problems.push_back({{"policy", problem.policy}, {"subject", problem.subject}, {"message", problem.message}});
    return json{{"actions", std::move(actions)}, {"problems", std::move(problems)}};
}

} // namespace affinityctl

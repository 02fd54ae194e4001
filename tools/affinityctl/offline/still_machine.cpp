// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/still_machine.hpp"

#include "base/text.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/facts.hpp"
#include "inventory/process_files.hpp"
#include "machine/queue_files.hpp"
#include "machine/reader.hpp"
#include "planner/lanes.hpp"
#include "planner/matcher.hpp"
#include "topology/reader.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

namespace planner = affinityd::planner;
namespace inventory = affinityd::inventory;
namespace machine = affinityd::machine;
using affinityd::Result;
using affinityd::host::Root;
using affinityd::policy::PolicySet;

namespace {

/// Nothing was ever changed on a still machine.
struct Untouched final : planner::UndoLookup {
    [[nodiscard]] planner::UndoPointer find(const machine::Subject&) const override { return nullptr; }
};

/// Parents have smaller numbers than their children, unless numbers have wrapped around: seen in order, most
/// are known in time.
class SeenLineage final : public planner::Lineage {
  public:
    SeenLineage(const Root& root, const PolicySet& policies, const std::map<int, std::size_t>& policy_of)
        : root_(root), policies_(policies), policy_of_(policy_of) {}

    [[nodiscard]] std::vector<std::string>
    ancestor_policies(const inventory::ProcessFacts& process) const override {
        std::vector<std::string> names;
        for (const int pid : inventory::read_ancestors(root_, process.parent()))
            if (const auto at = policy_of_.find(pid); at != policy_of_.end())
                names.push_back(policies_.policies[at->second].name);
        return names;
    }

  private:
    const Root& root_;
    const PolicySet& policies_;
    const std::map<int, std::size_t>& policy_of_;
};

Result<std::vector<int>> processes_where(const Root& root,
                                         const std::function<bool(const inventory::ProcessScan&)>& is_meant) {
    const auto pids = inventory::list_pids(root);
    if (!pids) return std::unexpected(pids.error());
    std::vector<int> found;
    for (const int pid : *pids)
        if (const auto scan = inventory::ProcessScan::open(root, pid).value_or(std::nullopt);
            scan && is_meant(*scan))
            found.push_back(pid);
    return found;
}

} // namespace

Result<std::vector<int>> processes_of_unit(const Root& root, const std::string& unit) {
    return processes_where(root, [&](const inventory::ProcessScan& scan) {
        const auto names = planner::unit_names(scan.facts());
        return std::ranges::find(names, unit) != names.end();
    });
}

Result<std::vector<int>> processes_of_name(const Root& root, const std::string& name) {
    return processes_where(root, [&](const inventory::ProcessScan& scan) { return scan.comm() == name; });
}

bool needs_sockets(const affinityd::policy::Policy& policy) {
    using affinityd::policy::Model;
    return policy.nics_auto && (policy.model == Model::irq || policy.model == Model::full);
}

StillMachine::StillMachine(const PolicySet& policies, Root root, Root processes)
    : policies_(policies), root_(std::move(root)), processes_root_(std::move(processes)),
      sources_(processes_root_, inventory::ask_name_service) {}

Result<std::unique_ptr<StillMachine>> StillMachine::read(const PolicySet& policies, const std::string& folder,
                                                         machine::KnownLatencies latencies,
                                                         const OtherProcesses& others) {
    auto root = Root::open(folder);
    if (!root) return std::unexpected(root.error());
    auto processes = Root::open(others.folder.empty() ? folder : others.folder);
    if (!processes) return std::unexpected(processes.error());
    std::unique_ptr<StillMachine> still(new StillMachine(policies, std::move(*root), std::move(*processes)));
    auto machine = machine::read_machine(still->root_);
    if (!machine) return std::unexpected(machine.error());
    still->machine_ = std::move(*machine);
    machine::use_latencies(still->machine_, std::move(latencies));
    if (auto done = still->read_processes(); !done) return std::unexpected(done.error());
    planner::Released idle;
    for (std::size_t i = 0; i < policies.policies.size(); ++i) {
        const auto& policy = policies.policies[i];
        if (policy.exclusive == affinityd::policy::Exclusive::yes &&
            policy.model != affinityd::policy::Model::irq &&
            std::ranges::find(still->processes_, i, &SeenProcess::policy) == still->processes_.end())
            idle.insert(policy.name);
    }
    planner::NicUsage usage;
    const planner::Interfaces interfaces(still->machine_);
    for (const auto& process : still->processes_) {
        if (!process.policy) continue;
        const auto& policy = policies.policies[*process.policy];
        const auto named = planner::policy_nics(policy, still->machine_, {});
        const auto serving = others.nics.find(process.scan.id().tid);
        const bool is_served = serving != others.nics.end();
        if (named.empty() && !is_served) continue;
        planner::ReadingProcess reading{.nics = is_served           ? &serving->second
                                                : named.size() == 1 ? &named
                                                                    : nullptr,
                                        .cpuset = still->cpuset(process),
                                        .rules = {}};
        for (unsigned index = 0; const auto& thread : process.threads)
            reading.rules.push_back(planner::rule_of(policy, thread.comm, index++, nullptr));
        planner::count_readers(policy, interfaces, reading, usage);
    }
    for (const auto& policy : policies.policies)
        still->nics_.push_back(planner::policy_nics(policy, still->machine_, usage));
    still->placements_ = planner::compile(policies, still->machine_, usage, nullptr, idle);
    return still;
}

Result<void> StillMachine::read_processes() {
    const auto pids = inventory::list_pids(processes_root_);
    if (!pids) return std::unexpected(pids.error());
    const planner::Matcher matcher(policies_);
    const SeenLineage lineage(processes_root_, policies_, policy_of_);
    for (const int pid : *pids) {
        auto scan = inventory::ProcessScan::open(processes_root_, pid, &sources_).value_or(std::nullopt);
        if (!scan) continue;
        const auto policy = matcher.match(scan->facts(), lineage);
        if (policy) policy_of_[pid] = *policy;
        auto threads =
            inventory::read_threads(processes_root_, pid).value_or(std::vector<inventory::Thread>{});
        processes_.push_back({std::move(*scan), policy, std::move(threads)});
    }
    return {};
}

planner::Planning StillMachine::planning() {
    static const Untouched undo;
    return {placements_, assignments_, undo};
}

const SeenProcess* StillMachine::process_of(int tid) const {
    const auto found = std::ranges::find_if(processes_, [&](const SeenProcess& process) {
        return process.scan.id().tid == tid ||
               std::ranges::any_of(process.threads, [&](const auto& thread) { return thread.id.tid == tid; });
    });
    return found == processes_.end() ? nullptr : &*found;
}

std::vector<planner::Verdict> StillMachine::consider(const SeenProcess& process) const {
    return planner::Matcher(policies_).explain(process.scan.facts(),
                                               SeenLineage(processes_root_, policies_, policy_of_));
}

bool StillMachine::is_recorded(const SeenProcess& process, const std::string& field) const {
    if (processes_root_.is_live() || process.scan.facts().is_kernel()) return true;
    const auto has = [&](const char* file) {
        const auto text = processes_root_.proc().text(fmt::format("{}/{}", process.scan.id().tid, file));
        return text && !text->empty();
    };
    if (field == "exe") return !process.scan.facts().exe().empty();
    if (field == "cmdline") return has("cmdline");
    if (field == "unit" || field == "cgroup" || field == "container") return has("cgroup");
    if (field == "pod" || field == "namespace") return affinityd::inventory::tells_pods(processes_root_);
    if (field == "listen") return processes_root_.proc().text("net/tcp") || has("net/tcp");
    return true;
}

std::vector<std::string> StillMachine::missing_parts() const {
    std::vector<std::string> missing;
    if (root_.is_live()) return missing;
    if (processes_.empty()) missing.emplace_back("processes (proc/PID)");
    if (!root_.proc().text("interrupts")) missing.emplace_back("interrupts (proc/interrupts)");
    const auto& irqs = machine_.irqs.irqs;
    if (const auto unread = std::ranges::count_if(irqs, [](const auto& irq) { return !irq.requested; });
        unread > 0)
        missing.push_back(affinityd::counted(static_cast<std::uint64_t>(unread), "mask") +
                          " of interrupts (proc/irq)");
    if (!root_.sys().exists("class/net")) missing.emplace_back("interfaces (sys/class/net)");
    return missing;
}

const affinityd::CpuSet* StillMachine::cpuset(const SeenProcess& process) {
    return sources_.cpuset(process.scan.id().tid);
}

void StillMachine::plan(const SeenProcess& process, const Sink& sink) {
    const auto& policy = process.policy;
    planner::ProcessView view{process.scan.id(), policy, policy ? &nics_[*policy] : nullptr,
                              policy ? cpuset(process) : nullptr};
    const std::function<affinityd::CpuSet()> cramped = [&] {
        const auto& topology = machine_.topology;
        return planner::cramped(topology, affinityd::topology::read_room(root_, topology),
                                inventory::read_resident(root_, view.id.tid).value_or(0));
    };
    view.cramped = &cramped;
    planner::plan_process(planning(), view, process.threads, sink);
}

std::optional<machine::Setting> StillMachine::present(const machine::Subject& subject) const {
    return std::visit(
        [&](const auto& queue) -> std::optional<machine::Setting> {
            if constexpr (requires { machine::read_setting(root_, queue); })
                return machine::read_setting(root_, queue).value_or(std::nullopt);
            return std::nullopt;
        },
        subject);
}

} // namespace affinityctl

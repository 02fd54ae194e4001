// SPDX-License-Identifier: Apache-2.0
// affinityctl topology: what holds what, and who is pinned where.
#include "topology/topology.hpp"

#include "affinityctl/client/occupancy.hpp"
#include "affinityctl/offline/machine_view.hpp"
#include "affinityctl/offline/topology_answer.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "host/file.hpp"
#include "host/root.hpp"
#include "machine/reader.hpp"
#include "netdev/nic.hpp"
#include "netdev/reader.hpp"
#include "planner/placements.hpp"
#include "policy/diagnostic.hpp"
#include "policy/reader.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

struct PolicyRequest {
    std::vector<std::string> names;   ///< of policies, or paths of files; empty: all
    std::vector<std::string> folders; ///< that are read; empty: the standard ones
};

using affinityd::counted;
using affinityd::Result;
namespace planner = affinityd::planner;
namespace policy = affinityd::policy;

/// The documents of the request: those of the folders, overridden by the files that it names.
Result<std::vector<policy::Document>> documents_of(const PolicyRequest& request) {
    auto documents =
        policy::read_folders(request.folders.empty() ? policy::standard_folders() : request.folders);
    if (!documents) return documents;
    for (const auto& name : request.names) {
        if (name.find('/') == std::string::npos && !name.ends_with(".yaml")) continue;
        auto content = affinityd::host::read_file(name);
        if (!content) return std::unexpected(content.error());
        if (!*content) return affinityd::fail("there is no such policy file", name);
        documents->push_back({name, std::move(**content)});
    }
    return documents;
}

std::string policy_name(const std::string& asked) {
    std::string name = asked.substr(asked.rfind('/') + 1);
    if (name.ends_with(".yaml")) name.resize(name.size() - 5);
    return name;
}

Result<void> all_known(const PolicyRequest& request, const policy::PolicySet& set) {
    for (const auto& asked : request.names) {
        if (std::ranges::find(set.policies, policy_name(asked), &policy::Policy::name) != set.policies.end())
            continue;
        std::vector<std::string_view> names;
        for (const auto& each : set.policies)
            names.push_back(each.name);
        const auto hint = policy::did_you_mean(asked, names);
        std::string known;
        for (const auto each : names)
            known += (known.empty() ? "" : ", ") + std::string(each);
        return affinityd::fail("there is no such policy" + (hint.empty() ? "" : " (" + hint + ")") +
                                   (known.empty() ? "; none is there" : "; there are " + known),
                               asked);
    }
    return {};
}

Tenant tenant_of(const planner::ResolvedPolicy& resolved, const planner::Placements& placements) {
    Tenant tenant{.policy = resolved.policy->name,
                  .model = std::string(to_string(resolved.policy->model)),
                  .cpus = resolved.allowed,
                  .exclusive = resolved.policy->exclusive != affinityd::policy::Exclusive::no,
                  .pins = {},
                  .summary = {}};
    if (!resolved.active) return tenant;
    std::size_t count = 0;
    if (resolved.policy->model == policy::Model::process || resolved.policy->model == policy::Model::full)
        for (std::size_t rule = 0; rule < resolved.distributions.size(); ++rule) {
            const auto& slots = resolved.distributions[rule];
            const std::string name = rule == 0 ? "slot" : fmt::format("thread rule {}, slot", rule);
            for (std::size_t i = 0; i < slots.size(); ++i)
                tenant.pins.push_back({fmt::format("{} {} of {}", name, i + 1, slots.size()), slots[i].mask});
            if (rule == 0) count = slots.size();
        }
    std::size_t interrupts = 0;
    for (const auto& queue : placements.queues) {
        const auto* irq = std::get_if<planner::IrqMask>(&queue.subject);
        if (irq == nullptr || queue.policy != tenant.policy || queue.wanted.cpus().empty() || queue.rank > 0)
            continue;
        tenant.pins.push_back({fmt::format("{} (IRQ {})", irq->label, irq->irq), queue.wanted.cpus(), true});
        ++interrupts;
    }
    tenant.summary = counted(count, "slot");
    if (interrupts > 0) tenant.summary += ", " + counted(interrupts, "interrupt", "interrupts");
    return tenant;
}

std::string source_of(const std::vector<std::string>& policies) {
    if (policies.empty()) return "as the policies would have it";
    std::string text = policies.size() == 1 ? "as policy " : "as policies ";
    for (std::size_t i = 0; i < policies.size(); ++i)
        text += (i == 0 ? "" : ", ") + policies[i];
    return text + " would have it";
}

/// All that policies would occupy on a machine, without a daemon: their CPUs, the slots for their tasks, and
/// where the interrupts of their interfaces would go. The tasks that exist are not read. Faults of the files
/// are added to `faults`.
Result<Occupancy> occupancy_of_policies(const PolicyRequest& request, const affinityd::host::Root& root,
                                        const affinityd::topology::Topology& topology,
                                        const std::vector<affinityd::netdev::Nic>& nics,
                                        std::vector<policy::Diagnostic>& faults) {
    const auto documents = documents_of(request);
    if (!documents) return std::unexpected(documents.error());
    auto read = policy::read_policies(*documents);
    policy::add_source_lines(read.diagnostics, *documents);
    std::ranges::copy_if(read.diagnostics, std::back_inserter(faults),
                         [](const auto& each) { return each.severity == policy::Severity::error; });
    if (auto known = all_known(request, read.set); !known) return std::unexpected(known.error());
    auto irqs = affinityd::machine::read_irqs(root);
    if (!irqs) return std::unexpected(irqs.error());
    affinityd::machine::Machine machine{topology, nics, std::move(*irqs)};
    affinityd::machine::link_vectors(machine);
    const auto placements = planner::compile(read.set, machine, {});
    std::vector<std::string> wanted;
    std::ranges::transform(request.names, std::back_inserter(wanted), policy_name);
    const auto is_wanted = [&](const std::string& name) {
        return wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
    };
    Occupancy occupancy;
    occupancy.unit = "slot";
    occupancy.source = source_of(wanted);
    for (const auto& resolved : placements.policies) {
        if (!is_wanted(resolved.policy->name)) continue;
        occupancy.tenants.push_back(tenant_of(resolved, placements));
        const bool moves_queues =
            resolved.policy->model == policy::Model::irq || resolved.policy->model == policy::Model::full;
        if (moves_queues && resolved.policy->nics_auto)
            occupancy.remarks.push_back(
                resolved.policy->name +
                ": its interfaces are those its sockets use, which is known when it runs");
    }
    for (const auto& problem : placements.problems)
        if (is_wanted(problem.policy))
            occupancy.remarks.push_back(
                fmt::format("{}: {}: {}", problem.policy, problem.subject, problem.message));
    return occupancy;
}

struct TopologyOptions {
    bool table = false;
    std::string svg;
    PolicyRequest policies;
    [[nodiscard]] bool asks_policies() const { return !policies.names.empty() || !policies.folders.empty(); }
};

std::string machine_name(const affinityd::host::Root& root) {
    if (root.is_live()) return root.proc().text("sys/kernel/hostname").value_or("");
    auto path = std::filesystem::path(root.path()).lexically_normal();
    return (path.has_filename() ? path : path.parent_path()).filename().string();
}

/// The daemon's report on this machine; empty if none answers, which is no fault.
Occupancy present_occupancy(const Globals& globals) {
    const auto status = status_if_any(globals);
    return status.is_object() ? occupancy_of_status(status) : Occupancy{};
}

/// Faults of policy files are complaints.
std::expected<void, CallError> find_occupancy(const TopologyOptions& options, const Globals& globals,
                                              const affinityd::host::Root& root, MachineView& view,
                                              Document& document) {
    if (!options.asks_policies()) {
        view.occupancy = present_occupancy(globals);
        return {};
    }
    std::vector<affinityd::policy::Diagnostic> faults;
    auto request = options.policies;
    warn_of_missing(request.folders);
    if (request.folders.empty()) request.folders = daemon_folders(globals);
    auto occupancy = occupancy_of_policies(request, root, view.topology, view.nics, faults);
    for (const auto& fault : faults)
        document.complaints.push_back(to_string(fault, true));
    if (!occupancy) return failed(occupancy.error());
    view.occupancy = std::move(*occupancy);
    if (!faults.empty()) document.code = exit_findings;
    return {};
}

Outcome run_topology(const TopologyOptions& options, const Globals& globals) {
    if (const auto picture = check_picture(globals, options.svg); !picture)
        return std::unexpected(picture.error());
    const auto root = affinityd::host::Root::open(globals.root);
    if (!root) return failed(root.error());
    auto topology = affinityd::topology::read_topology(*root);
    if (!topology) return failed(topology.error());
    Document document;
    if (globals.json) {
        document.value = topology_json(*topology);
        return document;
    }
    MachineView view{.name = machine_name(*root),
                     .topology = std::move(*topology),
                     .nics = {},
                     .devices = affinityd::topology::read_pci_devices(*root).value_or(
                         std::vector<affinityd::topology::PciDevice>{}),
                     .occupancy = {}};
    if (auto nics = affinityd::netdev::read_nics(*root))
        view.nics = std::move(*nics);
    else
        document.complaints.push_back("affinityctl: the network interfaces are left out: " +
                                      nics.error().to_string());
    if (const auto found = find_occupancy(options, globals, *root, view, document); !found) {
        for (const auto& complaint : document.complaints)
            fmt::print(stderr, "{}\n", complaint);
        return std::unexpected(found.error());
    }
    if (options.table) document.add(machine_table(view)).where = Document::Where::text;
    if (options.svg.empty() && !options.table) add_tree(view, document);
    if (options.svg.empty()) return document;
    document.picture = options.svg;
    document.title = view.name.empty() ? "machine" : view.name;
    Document sheet;
    sheet.line(machine_summary(view.topology));
    sheet.add(machine_picture(view));
    add_facts(view, sheet);
    for (auto& block : sheet.blocks) {
        block.where = Document::Where::picture;
        document.blocks.push_back(std::move(block));
    }
    return document;
}

} // namespace

void add_topology(CLI::App& app, Globals& globals, int& status) {
    const auto options = std::make_shared<TopologyOptions>();
    auto* verb = add_verb(app,
                          {.name = "topology",
                           .summary = "packages, caches, cores, nodes, and who is pinned where",
                           .example = "affinityctl topology --policy nginx --svg machine.svg",
                           .answer = topology_answer},
                          globals, status, [&globals, options] { return run_topology(*options, globals); });
    verb->add_flag("--table", options->table, "one line per CPU, as lscpu -e");
    verb->add_option("--svg", options->svg, "write a picture to this file (- is standard output)")
        ->type_name("FILE")
        ->check(not_empty());
    add_repeated(*verb, "--policy", options->policies.names,
                 "show the CPUs of this policy: a name, or a file; may be given again", "NAME");
    add_repeated(*verb, "--policies", options->policies.folders,
                 "policy folder instead of the usual ones; may be given again, the last wins", "DIR");
}

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
// affinityctl topology: what holds what, and who is pinned where.
// affinityctl cpus EXPR: the CPUs of a CPU-set expression on this machine.
#include "topology/topology.hpp"

#include "affinityctl/client/occupancy.hpp"
#include "affinityctl/machine/machine_view.hpp"
#include "affinityctl/offline/cpu_expr.hpp"
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/offline/topology_answer.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "machine/machine.hpp"
#include "machine/reader.hpp"
#include "netdev/nic.hpp"
#include "netdev/reader.hpp"
#include "planner/placements.hpp"
#include "policy/cpu_expr.hpp"
#include "policy/diagnostic.hpp"
#include "policy/reader.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace {

namespace planner = affinityd::planner;
namespace policy = affinityd::policy;
using affinityd::counted;
using nlohmann::json;

struct TopologyOptions {
    bool table = false;
    std::string svg;
    std::vector<std::string> names;   ///< of policies, or paths of files; empty: all
    std::vector<std::string> folders; ///< of policies; empty: the usual ones
    std::optional<Occupancy> known{}; ///< what is on the machine; no value: the daemon is asked
};

bool is_file(const std::string& asked) {
    return asked.find('/') != std::string::npos || asked.ends_with(".yaml");
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
        if (irq == nullptr || queue.policy != tenant.policy || queue.wanted.cpus().empty() ||
            queue.rank > 0 || !queue.off.empty())
            continue;
        tenant.pins.push_back({fmt::format("{} (IRQ {})", irq->label, irq->irq), queue.wanted.cpus(), true});
        ++interrupts;
    }
    tenant.summary = counted(count, "slot");
    if (interrupts > 0) tenant.summary += ", " + counted(interrupts, "interrupt", "interrupts");
    return tenant;
}

/// All that policies would occupy on a machine, without a daemon: their CPUs, the slots for their tasks, and
/// where the interrupts of their interfaces would go. The tasks that exist are not read. Faults of the files
/// are on standard error.
Occupancy occupancy_of_policies(const TopologyOptions& options, const Globals& globals,
                                const affinityd::host::Root& root, const MachineView& view, Document& into) {
    auto documents = read_policy_folders(options.folders, globals);
    std::vector<std::string> files, wanted;
    for (const auto& asked : options.names) {
        if (is_file(asked)) files.push_back(asked);
        wanted.emplace_back(is_file(asked) ? policy::policy_name(asked) : asked);
    }
    std::vector<policy::Diagnostic> findings;
    std::ranges::move(need(policy_documents(files, findings)), std::back_inserter(documents));
    const auto read = policy::read_policies(documents);
    std::ranges::copy(read.diagnostics, std::back_inserter(findings));
    for (const auto& finding : findings) {
        if (finding.severity != policy::Severity::error) continue;
        fmt::print(stderr, "{}\n", to_string(finding, true));
        into.code = exit_findings;
    }
    std::vector<std::string> known;
    for (const auto& each : read.set.policies)
        known.push_back(each.name);
    for (const auto& name : wanted)
        if (std::ranges::find(known, name) == known.end())
            throw CallError{exit_failure,
                            fmt::format("{}: there is no such policy{}; {}{}", name, guess(name, known),
                                        known.empty() ? "none is there" : "there are ",
                                        fmt::join(known, ", "))};
    affinityd::machine::Machine machine{view.topology, view.nics, need(affinityd::machine::read_irqs(root))};
    affinityd::machine::link_vectors(machine);
    const auto placements = planner::compile(read.set, machine, {});
    const auto is_wanted = [&](const std::string& name) {
        return wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
    };
    Occupancy occupancy;
    occupancy.unit = "slot";
    occupancy.source = wanted.empty()
                           ? "as the policies would have it"
                           : fmt::format("as {} {} would have it", wanted.size() == 1 ? "policy" : "policies",
                                         fmt::join(wanted, ", "));
    for (const auto& resolved : placements.policies) {
        const auto& wish = *resolved.policy;
        if (!is_wanted(wish.name)) continue;
        occupancy.tenants.push_back(tenant_of(resolved, placements));
        if (needs_sockets(wish))
            occupancy.remarks.push_back(
                wish.name + ": its interfaces are those its sockets use, which is known when it runs");
    }
    for (const auto& problem : placements.problems)
        if (is_wanted(problem.policy))
            occupancy.remarks.push_back(
                fmt::format("{}: {}: {}", problem.policy, problem.subject, problem.message));
    return occupancy;
}

std::string machine_name(const affinityd::host::Root& root) {
    if (root.is_live()) return root.proc().text("sys/kernel/hostname").value_or("");
    const auto path = std::filesystem::path(root.path()).lexically_normal();
    return (path.has_filename() ? path : path.parent_path()).filename().string();
}

Outcome run_topology(const TopologyOptions& options, const Globals& globals) {
    need(check_picture(globals, options.svg));
    const auto root = need(affinityd::host::Root::open(globals.root));
    auto topology = need(affinityd::topology::read_topology(root));
    Document document;
    if (globals.json) {
        document.value = topology_json(topology);
        return document;
    }
    MachineView view{.name = machine_name(root),
                     .topology = std::move(topology),
                     .nics = {},
                     .devices = affinityd::topology::read_pci_devices(root).value_or(
                         std::vector<affinityd::topology::PciDevice>{}),
                     .occupancy = {}};
    if (auto nics = affinityd::netdev::read_nics(root))
        view.nics = std::move(*nics);
    else
        document.complaints.push_back("affinityctl: the network interfaces are left out: " +
                                      nics.error().to_string());
    if (options.known) {
        view.occupancy = *options.known;
        document.value = seats_json(view.occupancy, view.topology);
    } else if (!options.names.empty() || !options.folders.empty())
        view.occupancy = occupancy_of_policies(options, globals, root, view, document);
    else if (const auto status = status_if_any(globals); status.is_object())
        view.occupancy = occupancy_of_status(status);
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

// clang-format off
constexpr Field cpus_answer[] = {
    {"ok", "", "flag", "it is understood"},
    {"expression", "", "text*", "the expression, in the usual form"},
    {"cpus", "", "cpus*", "its CPUs"},
    {"mask", "", "text*", "the same as the kernel's mask"},
    {"count", "", "count*", "how many"},
    {"offline", "", "cpus*", "those that are offline"},
    {"message", "", "text*", "else: the fault"},
    {"hint", "", "text*", "the remedy, or empty"},
    {"column", "", "count?*", "its place in the expression"},
    {"length", "", "count?*", "the length of that place"},
};
// clang-format on

struct CpusOptions {
    std::string text;
    std::vector<std::string> nics;
    bool mask = false;
};

/// With a caret below the fault.
Document fault_document(Exit code, const CpuExprFault& error, const CpusOptions& options) {
    const bool placed = error.length > 0;
    const auto column = static_cast<unsigned>(error.offset) + 1;
    policy::Diagnostic shown;
    shown.at.file = placed ? fmt::format("affinityctl: column {}", column) : "affinityctl";
    shown.at.column = column;
    shown.length = static_cast<unsigned>(error.length);
    shown.message = error.message;
    shown.hint = error.hint;
    if (placed) shown.source_line = options.text;
    Document document;
    document.complaints.push_back(policy::to_string(shown, placed));
    document.code = code;
    document.value =
        record(cpus_answer, {false, no_key, no_key, no_key, no_key, no_key, error.message, error.hint,
                             placed ? json(column) : json(), placed ? json(error.length) : json()});
    return document;
}

/// The fault, with a hint if what is not understood is an interface's name.
CpuExprFault with_nic_hint(CpuExprFault fault, const std::string& text, const affinityd::host::Root& root) {
    const auto nics = affinityd::netdev::read_nics(root);
    if (!nics || fault.offset >= text.size()) return fault;
    for (const auto& nic : *nics) {
        const auto rest = std::string_view(text).substr(fault.offset);
        const bool is_word =
            rest.starts_with(nic.name) &&
            (rest.size() == nic.name.size() ||
             std::string_view(" ,|&-!()").find(rest[nic.name.size()]) != std::string_view::npos);
        if (is_word) fault.hint = "write nic:" + nic.name;
    }
    return fault;
}

Outcome run_cpus(const CpusOptions& options, const Globals& globals) {
    const auto expr = policy::parse_cpu_expr(options.text);
    const auto unread = [&](const affinityd::Error& error) {
        return fault_document(exit_failure, {0, 0, error.to_string(), {}}, options);
    };
    const auto root = affinityd::host::Root::open(globals.root);
    if (!root) return unread(root.error());
    if (!expr) return fault_document(exit_usage, with_nic_hint(expr.error(), options.text, *root), options);
    auto topology = affinityd::topology::read_topology(*root);
    if (!topology) return unread(topology.error());
    affinityd::machine::Machine machine{std::move(*topology), {}, {}};
    const auto found = evaluate_cpu_expr(*expr, options.nics, machine, *root);
    if (!found) return fault_document(exit_failure, found.error(), options);
    const auto offline = *found - machine.topology.online;
    Document document;
    document.line(options.mask ? found->to_mask() : found->to_list());
    if (found->empty()) document.complaints.emplace_back("affinityctl: no CPU is in this set");
    if (!offline.empty()) document.complaints.push_back("affinityctl: offline now: CPU " + offline.to_list());
    document.value = record(cpus_answer, {true, policy::to_string(*expr), found->to_list(), found->to_mask(),
                                          found->count(), offline.to_list(), no_key, no_key, no_key, no_key});
    return document;
}

} // namespace

Outcome documents::topology(Globals globals, Occupancy occupancy) {
    globals.json = false;
    TopologyOptions options;
    options.svg = "-";
    options.known = std::move(occupancy);
    return run_topology(options, globals);
}

void add_topology(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "topology",
                  .summary = "packages, caches, cores, nodes, and who is pinned where",
                  .example = "affinityctl topology --policy nginx --svg machine.svg",
                  .answer = topology_answer},
                 globals, status, run_topology);
    verb->add_flag("--table", options->table, "one line per CPU, as lscpu -e");
    add_picture(*verb, options->svg, "write a picture to this file");
    add_repeated(*verb, "--policy", options->names,
                 "show the CPUs of this policy: a name, or a file; may be given again", "NAME");
    add_repeated(*verb, "--policies", options->folders,
                 "policy folder instead of the usual ones; may be given again, the last wins", "DIR");
}

void add_cpus(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "cpus",
                  .summary = "the CPUs that a CPU-set expression stands for here",
                  .example = "affinityctl cpus 'llc:2 & !smt - housekeeping'",
                  .answer = cpus_answer,
                  .manual = "affinityd.policy(5) has the language, affinityctl(1) the verb"},
                 globals, status, run_cpus);
    verb->add_option("EXPR", options->text, "the expression; in a shell, in quotes")->required();
    add_repeated(*verb, "--nic", options->nics,
                 "the meaning of a bare `nic`: an interface or a glob; may be given again; without: all "
                 "that have a device, if the same CPUs are near to all",
                 "NAME");
    verb->add_flag("--mask", options->mask, "print the kernel's mask form instead of a list");
}

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
// affinityctl topology: what holds what, and who is pinned where.
#include "affinityctl/daemon/occupancy.hpp"
#include "affinityctl/offline/policy_occupancy.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/not_empty.hpp"
#include "affinityctl/verbs/picture.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/topology/json.hpp"
#include "affinityctl/views/topology/machine_view.hpp"
#include "affinityctl/views/topology/picture.hpp"
#include "affinityctl/views/topology/text.hpp"
#include "host/root.hpp"
#include "netdev/reader.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

constexpr const char* topology_help =
    "Shows what holds what: packages, NUMA nodes, caches, cores, hardware threads, "
    "the interfaces and disks at their "
    "node, and who is pinned where: now, if a daemon answers, or, with --policy or "
    "--policies, as those policies would place tasks. The numbers are those of CPU-set expressions (llc:2, "
    "core:5, node:0, socket:1; see "
    "`affinityctl cpus`). Without options: a tree.";

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

/// What the daemon reports about this machine; empty if none answers, which is no fault.
Occupancy present_occupancy(const Globals& globals) {
    const auto status = status_if_any(globals);
    return status.is_object() ? occupancy_of_status(status) : Occupancy{};
}

/// The exit code; faults of policy files are on standard error.
int find_occupancy(const TopologyOptions& options, const Globals& globals, const affinityd::host::Root& root,
                   MachineView& view) {
    if (!options.asks_policies()) {
        view.occupancy = present_occupancy(globals);
        return exit_ok;
    }
    std::vector<affinityd::policy::Diagnostic> faults;
    auto request = options.policies;
    warn_of_missing(request.folders);
    if (request.folders.empty()) request.folders = daemon_folders(globals);
    auto occupancy = occupancy_of_policies(request, root, view.topology, view.nics, faults);
    for (const auto& fault : faults)
        fmt::print(stderr, "{}\n", to_string(fault, true));
    if (!occupancy) return complain(occupancy.error());
    view.occupancy = std::move(*occupancy);
    return faults.empty() ? exit_ok : exit_findings;
}

int show(const TopologyOptions& options, const Globals& globals) {
    const auto root = affinityd::host::Root::open(globals.root);
    if (!root) return complain(root.error());
    auto topology = affinityd::topology::read_topology(*root);
    if (!topology) return complain(topology.error());
    if (globals.json) {
        fmt::print("{}\n", topology_json(*topology));
        return exit_ok;
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
        fmt::print(stderr, "affinityctl: the network interfaces are left out: {}\n",
                   nics.error().to_string());
    const int status = find_occupancy(options, globals, *root, view);
    if (status == exit_failure) return status;
    if (!options.svg.empty())
        if (const int written = write_picture(options.svg, svg_picture(view)); written != exit_ok)
            return written;
    if (options.table)
        fmt::print("{}", table_text(view, globals.color));
    else if (options.svg.empty())
        fmt::print("{}", tree_text(view, globals.color));
    return status;
}

} // namespace

void add_topology(CLI::App& app, Globals& globals, int& status) {
    auto* verb =
        app.add_subcommand("topology", "packages, caches, cores, NUMA nodes, and who is pinned where");
    verb->footer(topology_help);
    const auto options = std::make_shared<TopologyOptions>();
    verb->add_flag("--table", options->table, "one line per CPU, as lscpu -e");
    verb->add_option("--svg", options->svg, "write a picture to this file (- is standard output)")
        ->type_name("FILE")
        ->check(not_empty());
    verb->add_option("--policy", options->policies.names,
                     "what this policy would occupy: a name, or a file; may be given again")
        ->type_name("NAME")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    verb->add_option("--policies", options->policies.folders,
                     "policy folder instead of the usual ones; may be given again, the last wins")
        ->type_name("DIR")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    verb->callback([options, &globals, &status] { status = show(*options, globals); });
}

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#include "topology/topology.hpp"

#include "host/root.hpp"
#include "topology/reader.hpp"
#include "topology_json.hpp"
#include "verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace affinityctl {

void add_topology(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("topology", "packages, caches, cores, NUMA nodes");
    verb->callback([&] {
        const auto root = affinityd::host::Root::open(globals.root);
        const auto topology = root ? affinityd::topology::read_topology(*root) : std::unexpected(root.error());
        if (!topology) {
            fmt::print(stderr, "affinityctl: {}\n", topology.error().to_string());
            status = exit_failure;
            return;
        }
        fmt::print("{}\n", topology_json(*topology));
    });
}

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#include "topology/topology.hpp"

#include "host/root.hpp"
#include "topology/reader.hpp"
#include "verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace affinityctl {

namespace {

using affinityd::CpuSet;
using affinityd::topology::Topology;
using nlohmann::json;

json groups_json(const std::vector<CpuSet>& groups) {
    json list = json::array();
    for (const auto& group : groups)
        list.push_back(group.to_list());
    return list;
}

template <class T>
json optional_json(const std::optional<T>& value) {
    return value ? json(*value) : json(nullptr);
}

json topology_json(const Topology& topology) {
    json cpus = json::array();
    for (const auto& cpu : topology.cpus)
        cpus.push_back({{"cpu", cpu.id}, {"package", optional_json(cpu.package)}, {"die", optional_json(cpu.die)},
                        {"core", optional_json(cpu.core)}, {"smt", cpu.smt.to_list()}, {"node", optional_json(cpu.node)}});
    json nodes = json::array();
    json order = json::array();
    json matrix = json::array();
    bool has_distance = topology.nodes.size() > 1;
    for (const auto& node : topology.nodes) {
        nodes.push_back({{"node", node.id}, {"cpus", node.cpus.to_list()},
                         {"memory", node.memory_bytes ? json(*node.memory_bytes > 0) : json(nullptr)}});
        order.push_back(node.id);
        matrix.push_back(node.distance);
        has_distance = has_distance && !node.distance.empty();
    }
    json kinds = json::array();
    for (const auto& kind : topology.kinds)
        kinds.push_back({{"name", kind.name}, {"rank", kind.rank}, {"cpus", kind.cpus.to_list()}});
    return {{"online", topology.online.to_list()},
            {"offline", topology.offline.to_list()},
            {"possible", topology.possible.to_list()},
            {"present", topology.present.to_list()},
            {"isolated", topology.isolated.to_list()},
            {"nohz_full", topology.nohz_full.to_list()},
            {"housekeeping", topology.housekeeping.to_list()},
            {"cpus", std::move(cpus)},
            {"package_groups", groups_json(topology.packages)},
            {"die_groups", groups_json(topology.dies)},
            {"cluster_groups", groups_json(topology.clusters)},
            {"l2_groups", groups_json(topology.cache_groups(2))},
            {"l3_groups", groups_json(topology.cache_groups(3))},
            {"llc_groups", groups_json(topology.llc_groups())},
            {"numa_nodes", std::move(nodes)},
            {"distance", has_distance ? json{{"nodes", std::move(order)}, {"matrix", std::move(matrix)}} : json(nullptr)},
            {"cpu_kinds", std::move(kinds)}};
}

} // namespace

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
        fmt::print("{}\n", topology_json(*topology).dump());
    });
}

} // namespace affinityctl

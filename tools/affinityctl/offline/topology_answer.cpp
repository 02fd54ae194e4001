// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/topology_answer.hpp"

#include <algorithm>
#include <vector>

namespace affinityctl {

namespace {

using affinityd::CpuSet;
using affinityd::topology::Topology;
using nlohmann::json;

// clang-format off
constexpr Field kind_fields[] = {
    {"cpus", "", "cpus", "the CPUs of these cores"},
    {"name", "", "text", "performance or efficiency, or another name of the kernel's"},
    {"rank", "", "count", "0 for the slowest"},
};
constexpr Field cpu_fields[] = {
    {"cpu", "", "count", "its number"},
    {"core", "", "count?", "its core, numbered through"},
    {"die", "", "count?", "its die"},
    {"node", "", "count?", "its NUMA node"},
    {"package", "", "count?", "its package"},
    {"smt", "", "cpus", "CPUs of the same core"},
};
constexpr Field distance_fields[] = {
    {"matrix", "", "count[][]", "a row for each node"},
    {"nodes", "", "count[]", "the nodes of rows and columns"},
};
constexpr Field node_fields[] = {
    {"node", "", "count", "its number"},
    {"cpus", "", "cpus", "its CPUs"},
    {"memory", "", "flag?", "it has memory"},
};
constexpr Field topology_fields[] = {
    {"online", "", "cpus", "online CPUs"},
    {"offline", "", "cpus", "offline CPUs"},
    {"possible", "", "cpus", "CPUs that the kernel could have"},
    {"present", "", "cpus", "CPUs that are there"},
    {"isolated", "", "cpus", "isolated at boot"},
    {"nohz_full", "", "cpus", "without a tick, by the kernel's command line"},
    {"housekeeping", "", "cpus", "neither"},
    {"cpus", "", "object[]", "online CPUs", cpu_fields},
    {"package_groups", "", "cpus[]", "packages"},
    {"die_groups", "", "cpus[]", "dies"},
    {"cluster_groups", "", "cpus[]", "clusters"},
    {"l2_groups", "", "cpus[]", "CPUs that share an L2 cache"},
    {"l3_groups", "", "cpus[]", "CPUs that share an L3 cache"},
    {"llc_groups", "", "cpus[]", "CPUs that share their last-level cache"},
    {"numa_nodes", "", "object[]", "NUMA nodes", node_fields},
    {"distance", "", "object?", "distances between nodes, null where there is one", distance_fields},
    {"cpu_kinds", "", "object[]", "kinds of cores, where there are several", kind_fields},
};
// clang-format on

template <class Values, class Form>
json list_of(const Values& values, Form form) {
    json list = json::array();
    for (const auto& value : values)
        list.push_back(form(value));
    return list;
}

json groups(const std::vector<CpuSet>& sets) {
    return list_of(sets, [](const CpuSet& set) { return json(set.to_list()); });
}

json distances_json(const Topology& topology) {
    const auto& nodes = topology.nodes;
    if (nodes.size() < 2 ||
        std::ranges::any_of(nodes, [](const auto& node) { return node.distance.empty(); }))
        return nullptr;
    return record(distance_fields, {list_of(nodes, [](const auto& node) { return json(node.distance); }),
                                    list_of(nodes, [](const auto& node) { return json(node.id); })});
}

} // namespace

const Fields topology_answer = topology_fields;

json topology_json(const Topology& topology) {
    auto cpus = list_of(topology.cpus, [](const auto& cpu) {
        return record(cpu_fields, {cpu.id, or_null(cpu.core), or_null(cpu.die), or_null(cpu.node),
                                   or_null(cpu.package), cpu.smt.to_list()});
    });
    auto nodes = list_of(topology.nodes, [](const auto& node) {
        return record(node_fields, {node.id, node.cpus.to_list(),
                                    node.memory_bytes ? json(*node.memory_bytes > 0) : json()});
    });
    auto kinds = list_of(topology.kinds, [](const auto& kind) {
        return record(kind_fields, {kind.cpus.to_list(), kind.name, kind.rank});
    });
    return record(topology_fields,
                  {topology.online.to_list(), topology.offline.to_list(), topology.possible.to_list(),
                   topology.present.to_list(), topology.isolated.to_list(), topology.nohz_full.to_list(),
                   topology.housekeeping.to_list(), std::move(cpus), groups(topology.packages),
                   groups(topology.dies), groups(topology.clusters), groups(topology.cache_groups(2)),
                   groups(topology.cache_groups(3)), groups(topology.llc_groups()), std::move(nodes),
                   distances_json(topology), std::move(kinds)});
}

} // namespace affinityctl

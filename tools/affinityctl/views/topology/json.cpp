// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/json.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace affinityctl {

namespace {

using affinityd::CpuSet;
using affinityd::topology::Topology;

/// For numbers, CPU lists and a few fixed words, none of which needs escaping.
std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

template <class T>
std::string number(const std::optional<T>& value) {
    return value ? std::to_string(*value) : "null";
}

template <class List, class Print>
std::string array(const List& list, Print print) {
    std::string text = "[";
    for (const auto& each : list) {
        if (text.size() > 1) text += ',';
        text += print(each);
    }
    return text + "]";
}

std::string groups(const std::vector<CpuSet>& list) {
    return array(list, [](const CpuSet& group) { return in_quotes(group.to_list()); });
}

std::string cpu_text(const affinityd::topology::Cpu& cpu) {
    return "{\"core\":" + number(cpu.core) + ",\"cpu\":" + std::to_string(cpu.id) +
           ",\"die\":" + number(cpu.die) + ",\"node\":" + number(cpu.node) +
           ",\"package\":" + number(cpu.package) + ",\"smt\":" + in_quotes(cpu.smt.to_list()) + "}";
}

std::string node_text(const affinityd::topology::Node& node) {
    const char* memory = !node.memory_bytes ? "null" : *node.memory_bytes > 0 ? "true" : "false";
    return "{\"cpus\":" + in_quotes(node.cpus.to_list()) + ",\"memory\":" + memory +
           ",\"node\":" + std::to_string(node.id) + "}";
}

std::string distances_json(const Topology& topology) {
    bool known = topology.nodes.size() > 1;
    for (const auto& node : topology.nodes)
        known = known && !node.distance.empty();
    if (!known) return "null";
    const auto row = [](const affinityd::topology::Node& node) {
        return array(node.distance, [](unsigned distance) { return std::to_string(distance); });
    };
    return "{\"matrix\":" + array(topology.nodes, row) +
           ",\"nodes\":" + array(topology.nodes, [](const auto& node) { return std::to_string(node.id); }) +
           "}";
}

std::string kind_text(const affinityd::topology::Kind& kind) {
    return "{\"cpus\":" + in_quotes(kind.cpus.to_list()) + ",\"name\":" + in_quotes(kind.name) +
           ",\"rank\":" + std::to_string(kind.rank) + "}";
}

} // namespace

std::string topology_json(const Topology& topology) {
    return "{\"cluster_groups\":" + groups(topology.clusters) +
           ",\"cpu_kinds\":" + array(topology.kinds, kind_text) +
           ",\"cpus\":" + array(topology.cpus, cpu_text) + ",\"die_groups\":" + groups(topology.dies) +
           ",\"distance\":" + distances_json(topology) +
           ",\"housekeeping\":" + in_quotes(topology.housekeeping.to_list()) +
           ",\"isolated\":" + in_quotes(topology.isolated.to_list()) +
           ",\"l2_groups\":" + groups(topology.cache_groups(2)) +
           ",\"l3_groups\":" + groups(topology.cache_groups(3)) +
           ",\"llc_groups\":" + groups(topology.llc_groups()) +
           ",\"nohz_full\":" + in_quotes(topology.nohz_full.to_list()) +
           ",\"numa_nodes\":" + array(topology.nodes, node_text) +
           ",\"offline\":" + in_quotes(topology.offline.to_list()) +
           ",\"online\":" + in_quotes(topology.online.to_list()) +
           ",\"package_groups\":" + groups(topology.packages) +
           ",\"possible\":" + in_quotes(topology.possible.to_list()) +
           ",\"present\":" + in_quotes(topology.present.to_list()) + "}";
}

} // namespace affinityctl

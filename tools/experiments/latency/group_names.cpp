// SPDX-License-Identifier: Apache-2.0
#include "experiments/latency/group_names.hpp"

#include "topology/parts.hpp"

#include <utility>
#include <vector>

namespace affinityd::experiments {

namespace {

/// One way in which the topology divides the machine.
struct Division {
    std::string one, many;                            ///< "llc", "LLC groups"
    std::vector<std::pair<unsigned, CpuSet>> members; ///< by number in CPU-set expressions
};

Division numbered_division(std::string one, std::string many, const std::vector<CpuSet>& groups) {
    Division division{std::move(one), std::move(many), {}};
    for (const auto& group : groups)
        division.members.emplace_back(static_cast<unsigned>(division.members.size()), group);
    return division;
}

/// Fine to coarse, without those that hold a single part.
std::vector<Division> divisions_of(const topology::Topology& topology) {
    std::vector<Division> divisions;
    divisions.push_back(numbered_division("core", "cores", topology.cores));
    divisions.push_back(numbered_division("L2", "L2 caches", topology.cache_groups(2)));
    divisions.push_back(numbered_division("cluster", "clusters", topology.clusters));
    divisions.push_back(numbered_division("llc", "LLC groups", topology.llc_groups()));
    divisions.push_back(numbered_division("die", "dies", topology.dies));
    Division nodes{"node", "nodes", {}}, sockets{"socket", "sockets", {}};
    for (const auto& node : topology.nodes)
        if (!node.cpus.empty()) nodes.members.emplace_back(node.id, node.cpus);
    for (std::size_t i = 0; i < topology.packages.size(); ++i)
        sockets.members.emplace_back(topology::package_number(topology, i), topology.packages[i]);
    divisions.push_back(std::move(nodes));
    divisions.push_back(std::move(sockets));
    std::erase_if(divisions, [](const Division& division) { return division.members.size() < 2; });
    return divisions;
}

/// The members that are wholly within the group; no value if the group is not made of members.
CpuSet numbers_within(const Division& division, const CpuSet& group, const CpuSet& measured) {
    CpuSet numbers, covered;
    for (const auto& [number, cpus] : division.members) {
        const auto present = cpus & measured;
        if (present.empty() || !group.contains(present)) continue;
        numbers.insert(number);
        covered |= present;
    }
    return covered == group ? numbers : CpuSet{};
}

std::string part_of(const std::vector<Division>& divisions, const CpuSet& group) {
    for (const auto& division : divisions)
        for (const auto& [number, cpus] : division.members)
            if (cpus.contains(group)) return "part of " + division.one + " " + std::to_string(number);
    return {};
}

} // namespace

std::string name_of_group(const topology::Topology& topology, const CpuSet& group, const CpuSet& measured) {
    const auto divisions = divisions_of(topology);
    std::string equal, united;
    for (const auto& division : divisions) {
        const auto numbers = numbers_within(division, group, measured);
        if (numbers.empty()) continue;
        const auto name = division.one + " " + numbers.to_list();
        if (numbers.count() == 1)
            equal += (equal.empty() ? "" : " = ") + name;
        else
            united = name; // the coarsest is the shortest
    }
    if (!equal.empty()) return equal;
    return united.empty() ? part_of(divisions, group) : united;
}

std::string name_of_level(const topology::Topology& topology, const topology::LatencyLevel& level,
                          const CpuSet& measured) {
    std::string names;
    for (const auto& division : divisions_of(topology)) {
        bool is_same = true;
        for (const auto& group : level.groups)
            is_same = is_same && numbers_within(division, group, measured).count() == 1;
        if (is_same) names += (names.empty() ? "" : " = ") + division.many;
    }
    return names;
}

} // namespace affinityd::experiments

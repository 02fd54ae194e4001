// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/facts.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/table.hpp"
#include "affinityctl/views/topology/cpu_list.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::CpuSet;
using affinityd::topology::Topology;

namespace {

std::string distances(const Topology& topology) {
    const auto& nodes = topology.nodes;
    if (nodes.size() < 2 ||
        std::ranges::any_of(nodes, [](const auto& node) { return node.distance.empty(); }))
        return {};
    constexpr std::size_t most = 64; // a wider table helps nobody
    if (nodes.size() > most) {
        unsigned farthest = 0;
        for (const auto& node : nodes)
            farthest = std::max(farthest, std::ranges::max(node.distance));
        return fmt::format("node distances: {} at most, between {}\n", farthest,
                           counted(nodes.size(), "node"));
    }
    std::string text = "node distances:\n     ";
    for (const auto& node : nodes)
        text += fmt::format("{:>5}", node.id);
    for (const auto& node : nodes) {
        text += fmt::format("\n{:>5}", node.id);
        for (const unsigned distance : node.distance)
            text += fmt::format("{:>5}", distance);
    }
    return text + "\n";
}

} // namespace

std::string facts_text(const Topology& topology) {
    std::string text;
    const std::pair<const char*, const CpuSet*> sets[] = {
        {"offline", &topology.offline}, {"isolated", &topology.isolated}, {"nohz_full", &topology.nohz_full}};
    for (const auto& [name, cpus] : sets)
        if (!cpus->empty()) text += fmt::format("{}: CPUs {}\n", name, short_list(*cpus));
    if (topology.housekeeping != topology.online)
        text += fmt::format("housekeeping: CPUs {}\n", short_list(topology.housekeeping));
    for (const auto& kind : topology.kinds)
        text += fmt::format("{} cores: CPUs {}\n", kind.name, short_list(kind.cpus));
    return text + distances(topology);
}

std::string tenants_text(const Occupancy& occupancy, bool color) {
    std::string text;
    if (!occupancy.tenants.empty())
        text += "\n" + bold("Who is where, " + printable(occupancy.source), color) + ":\n";
    for (const auto& tenant : occupancy.tenants)
        text += fmt::format("  {} (affinity {}{}): CPUs {}{}\n", printable(tenant.policy),
                            printable(tenant.model), tenant.exclusive ? ", exclusive" : "",
                            tenant.cpus.empty() ? "-" : short_list(tenant.cpus),
                            tenant.summary.empty() ? "" : "; " + printable(tenant.summary));
    for (const auto& remark : occupancy.remarks)
        text += "  note: " + printable(remark) + "\n";
    return text;
}

} // namespace affinityctl

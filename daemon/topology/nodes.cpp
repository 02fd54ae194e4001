// SPDX-License-Identifier: Apache-2.0
#include "topology/nodes.hpp"

#include "base/text.hpp"
#include "host/root.hpp"
#include "topology/numbered.hpp"

#include <optional>
#include <string>
#include <utility>

namespace affinityd::topology {

namespace {

std::optional<std::uint64_t> node_memory(const host::Dir& node) {
    const auto text = node.text("meminfo");
    if (!text) return std::nullopt;
    for (const auto line : split(*text, '\n')) {
        // "Node 0 MemTotal:  65536 kB"
        const auto words = split_words(line);
        if (words.size() >= 4 && words[2] == "MemTotal:")
            if (const auto kib = parse_number<std::uint64_t>(words[3]);
                kib && *kib < (std::uint64_t{1} << 50))
                return *kib * 1024;
    }
    return std::nullopt;
}

} // namespace

Result<void> read_nodes(const host::Dir& dir, Topology& topology) {
    const auto online = dir.cpu_list("online");
    const auto ids = numbered(dir, "node");
    if (!ids) return std::unexpected(ids.error());
    for (const unsigned id : *ids) {
        if (online && !online->contains(id)) continue;
        const auto folder = dir.dir("node" + std::to_string(id));
        if (!folder) continue;
        Node node{.id = id, .cpus = {}, .memory_bytes = node_memory(*folder), .distance = {}};
        auto cpus = folder->cpu_list("cpulist");
        if (!cpus) cpus = folder->cpu_mask("cpumap");
        node.cpus = cpus.value_or(CpuSet{}) & topology.online;
        const auto distances = folder->text("distance").value_or("");
        for (const auto word : split_words(distances))
            if (const auto value = parse_number<unsigned>(word)) node.distance.push_back(*value);
        for (auto& cpu : topology.cpus)
            if (node.cpus.contains(cpu.id) && !cpu.node) cpu.node = id;
        topology.nodes.push_back(std::move(node));
    }
    return {};
}

} // namespace affinityd::topology

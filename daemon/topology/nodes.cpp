// SPDX-License-Identifier: Apache-2.0
#include "topology/nodes.hpp"

#include "base/text.hpp"
#include "host/root.hpp"
#include "topology/numbered.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::topology {

namespace {

constexpr std::size_t most_nodes = 1024; // 1 << NODES_SHIFT is at most this, arch/*/Kconfig

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

/// One for each node, at most: a recording may say more, and the matrix grows with the square.
std::vector<unsigned> distances(const host::Dir& node, std::size_t nodes) {
    constexpr std::size_t longest = 11; // ten digits and a space
    const auto text = node.text("distance").value_or("");
    std::vector<unsigned> values;
    for (const auto word : split_words(std::string_view(text).substr(0, nodes * longest)))
        if (const auto value = parse_number<unsigned>(word); value && values.size() < nodes)
            values.push_back(*value);
    return values;
}

} // namespace

Result<void> read_nodes(const host::Dir& dir, Topology& topology) {
    const auto online = dir.cpu_list("online");
    const auto ids = numbered(dir, "node");
    if (!ids) return std::unexpected(ids.error());
    for (const unsigned id : *ids) {
        if (online && !online->contains(id)) continue;
        if (topology.nodes.size() == most_nodes) break;
        const auto folder = dir.dir("node" + std::to_string(id));
        if (!folder) continue;
        Node node{.id = id, .cpus = {}, .memory_bytes = node_memory(*folder), .distance = {}};
        auto cpus = folder->cpu_list("cpulist");
        if (!cpus) cpus = folder->cpu_mask("cpumap");
        node.cpus = cpus.value_or(CpuSet{}) & topology.online;
        node.distance = distances(*folder, std::min(ids->size(), most_nodes));
        for (auto& cpu : topology.cpus)
            if (node.cpus.contains(cpu.id) && !cpu.node) cpu.node = id;
        topology.nodes.push_back(std::move(node));
    }
    return {};
}

} // namespace affinityd::topology

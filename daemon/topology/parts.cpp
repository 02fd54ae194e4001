// SPDX-License-Identifier: Apache-2.0
#include "topology/parts.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

namespace affinityd::topology {

namespace {

using PartKind = Part::Kind;

struct Candidate {
    Part part;
    std::size_t size = 0;
    unsigned rank = 0; ///< of parts of one size, the lower is outside
};

constexpr unsigned ranks_per_kind = 32;

unsigned rank_of(PartKind kind, const Cache* cache) {
    unsigned rank = static_cast<unsigned>(kind) * ranks_per_kind;
    if (cache != nullptr) rank += (8 - std::min(cache->level, 8U)) * 3 + static_cast<unsigned>(cache->type);
    return rank;
}

void add(std::vector<Candidate>& into, PartKind kind, std::size_t index, const CpuSet& cpus,
         const Cache* cache = nullptr) {
    if (cpus.empty()) return;
    into.push_back({.part = {.kind = kind, .index = index, .cpus = cpus, .parts = {}},
                    .size = cpus.count(),
                    .rank = rank_of(kind, cache)});
}

std::vector<Candidate> candidates_of(const Topology& topology) {
    std::vector<Candidate> all;
    const std::pair<PartKind, const std::vector<CpuSet>*> levels[] = {
        {PartKind::drawer, &topology.drawers},   {PartKind::book, &topology.books},
        {PartKind::package, &topology.packages}, {PartKind::die, &topology.dies},
        {PartKind::cluster, &topology.clusters}, {PartKind::core, &topology.cores}};
    for (const auto& [kind, groups] : levels)
        for (std::size_t i = 0; i < groups->size(); ++i)
            add(all, kind, i, (*groups)[i]);
    for (std::size_t i = 0; i < topology.nodes.size(); ++i)
        add(all, PartKind::node, i, topology.nodes[i].cpus);
    for (std::size_t i = 0; i < topology.caches.size(); ++i)
        add(all, PartKind::cache, i, topology.caches[i].cpus, &topology.caches[i]);
    for (std::size_t i = 0; i < topology.cpus.size(); ++i)
        add(all, PartKind::cpu, i, CpuSet{topology.cpus[i].id});
    // Groups are cut to the online CPUs by the reader; one that is not has no place.
    std::erase_if(all, [&](const Candidate& each) { return !topology.online.contains(each.part.cpus); });
    std::ranges::stable_sort(all, [](const Candidate& a, const Candidate& b) {
        return a.size != b.size ? a.size > b.size : a.rank < b.rank;
    });
    return all;
}

/// Puts candidates, widest first, into `parent`; those that fit into one already put go on to it.
void fill(Part& parent, std::vector<Candidate> candidates, std::vector<Part>& crossing) {
    std::unordered_map<unsigned, std::size_t> holder; // CPU -> part
    std::vector<std::vector<Candidate>> inside;
    CpuSet covered;
    for (auto& candidate : candidates) {
        const CpuSet& cpus = candidate.part.cpus;
        if (!cpus.intersects(covered)) {
            for (const unsigned cpu : cpus)
                holder[cpu] = parent.parts.size();
            covered |= cpus;
            parent.parts.push_back(std::move(candidate.part));
            inside.emplace_back();
            continue;
        }
        const auto found = holder.find(cpus.first());
        if (found != holder.end() && parent.parts[found->second].cpus.contains(cpus))
            inside[found->second].push_back(std::move(candidate));
        else
            crossing.push_back(std::move(candidate.part));
    }
    for (std::size_t i = 0; i < parent.parts.size(); ++i)
        fill(parent.parts[i], std::move(inside[i]), crossing);
    std::ranges::sort(parent.parts, {}, [](const Part& part) { return part.cpus.first(); });
}

} // namespace

PartTree nest(const Topology& topology) {
    PartTree tree;
    tree.machine.cpus = topology.online;
    fill(tree.machine, candidates_of(topology), tree.crossing);
    return tree;
}

unsigned package_number(const Topology& topology, std::size_t package) {
    const Cpu* cpu = topology.find(topology.packages[package].first());
    return cpu != nullptr && cpu->package ? static_cast<unsigned>(*cpu->package)
                                          : static_cast<unsigned>(package);
}

std::string cache_name(const Cache& cache) {
    std::string name = "L" + std::to_string(cache.level);
    if (cache.type == Cache::Type::data) name += 'd';
    if (cache.type == Cache::Type::instruction) name += 'i';
    return name;
}

} // namespace affinityd::topology

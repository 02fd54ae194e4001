// SPDX-License-Identifier: Apache-2.0
#include "topology/topology.hpp"

#include <algorithm>

namespace affinityd::topology {

namespace {

CpuSet group_with(const std::vector<CpuSet>& groups, unsigned cpu) {
    const auto found =
        std::ranges::find_if(groups, [cpu](const CpuSet& group) { return group.contains(cpu); });
    return found == groups.end() ? CpuSet{} : *found;
}

} // namespace

const Cpu* Topology::find(unsigned cpu) const {
    const auto found = std::ranges::lower_bound(cpus, cpu, {}, &Cpu::id);
    return found == cpus.end() || found->id != cpu ? nullptr : &*found;
}

const Node* Topology::node(unsigned id) const {
    const auto found = std::ranges::find(nodes, id, &Node::id);
    return found == nodes.end() ? nullptr : &*found;
}

std::vector<CpuSet> Topology::cache_groups(unsigned level) const {
    std::vector<CpuSet> groups;
    for (const auto& cache : caches)
        if (cache.level == level && cache.type != Cache::Type::instruction) groups.push_back(cache.cpus);
    return groups;
}

std::vector<CpuSet> Topology::llc_groups() const {
    std::vector<CpuSet> groups;
    CpuSet rest = online;
    while (!rest.empty()) {
        CpuSet group = llc_of(rest.first()) & rest; // recorded groups may overlap: no CPU is in two
        group.insert(rest.first());                 // whose caches may not be recorded
        rest -= group;
        groups.push_back(std::move(group));
    }
    return groups;
}

CpuSet Topology::core_of(unsigned cpu) const {
    const Cpu* found = find(cpu);
    return found == nullptr ? CpuSet{} : found->smt;
}

CpuSet Topology::llc_of(unsigned cpu) const {
    if (!online.contains(cpu)) return {};
    for (auto cache = caches.rbegin(); cache != caches.rend(); ++cache) // the highest level first
        if (cache->type != Cache::Type::instruction && cache->level >= 2 && cache->cpus.contains(cpu))
            return cache->cpus;
    for (const auto* groups : {&dies, &packages})
        if (auto group = group_with(*groups, cpu); !group.empty()) return group;
    return node_cpus_of(cpu);
}

CpuSet Topology::package_of(unsigned cpu) const { return group_with(packages, cpu); }

CpuSet Topology::node_cpus_of(unsigned cpu) const {
    const Cpu* found = find(cpu);
    if (found == nullptr) return {};
    const Node* own = found->node ? node(*found->node) : nullptr;
    return own == nullptr ? online : own->cpus;
}

CpuSet Topology::smt_secondary() const {
    CpuSet secondary;
    for (const auto& cpu : cpus)
        if (cpu.smt.first() != cpu.id) secondary.insert(cpu.id);
    return secondary;
}

} // namespace affinityd::topology

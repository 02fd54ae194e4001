// SPDX-License-Identifier: Apache-2.0
#include "topology/kinds.hpp"

#include "host/root.hpp"

#include <functional>
#include <map>

namespace affinityd::topology {

namespace {

std::vector<Kind> by_core_type(const host::Root& root, const Topology& topology) {
    const CpuSet performance = root.sys().cpu_list("devices/cpu_core/cpus").value_or(CpuSet{}) & topology.online;
    const CpuSet efficiency = root.sys().cpu_list("devices/cpu_atom/cpus").value_or(CpuSet{}) & topology.online;
    if (performance.empty() || efficiency.empty()) return {};
    return {{"performance", 0, performance}, {"efficiency", 1, efficiency}};
}

std::vector<Kind> by_capacity(const Topology& topology) {
    std::map<unsigned, CpuSet, std::greater<>> groups;
    for (const auto& cpu : topology.cpus)
        if (cpu.capacity) groups[*cpu.capacity].insert(cpu.id);
    if (groups.size() < 2) return {};
    std::vector<Kind> kinds;
    for (auto& [capacity, cpus] : groups) {
        const auto rank = static_cast<unsigned>(kinds.size());
        std::string name = "middle";
        if (rank == 0) name = "performance";
        if (rank + 1 == groups.size()) name = "efficiency";
        kinds.push_back({std::move(name), rank, std::move(cpus)});
    }
    return kinds;
}

} // namespace

std::vector<Kind> read_kinds(const host::Root& root, const Topology& topology) {
    auto kinds = by_core_type(root, topology);
    return kinds.empty() ? by_capacity(topology) : kinds;
}

} // namespace affinityd::topology

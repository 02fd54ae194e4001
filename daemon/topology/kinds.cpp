// SPDX-License-Identifier: Apache-2.0
#include "topology/kinds.hpp"

#include "host/root.hpp"
#include "topology/caches.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>

namespace affinityd::topology {

namespace {

std::vector<Kind> by_core_type(const host::Root& root, const Topology& topology) {
    const CpuSet performance =
        root.sys().cpu_list("devices/cpu_core/cpus").value_or(CpuSet{}) & topology.online;
    const CpuSet efficiency =
        root.sys().cpu_list("devices/cpu_atom/cpus").value_or(CpuSet{}) & topology.online;
    if (performance.empty() || efficiency.empty()) return {};
    std::vector<Kind> kinds{{"performance", 0, performance}, {"efficiency", 1, efficiency}};
    // Arrow Lake-H and later, since Linux 6.13; earlier kernels have these among the atoms.
    CpuSet lowpower = root.sys().cpu_list("devices/cpu_lowpower/cpus").value_or(CpuSet{}) & topology.online;
    if (!lowpower.empty()) kinds.push_back({"lowpower", 2, std::move(lowpower)});
    return kinds;
}

/// Kinds from the strongest to the weakest; none if there is only one.
template <class Number>
std::vector<Kind> ranked(std::map<Number, CpuSet, std::greater<>>& groups) {
    if (groups.size() < 2) return {};
    std::vector<Kind> kinds;
    for (auto& [strength, cpus] : groups) {
        const auto rank = static_cast<unsigned>(kinds.size());
        std::string name = "middle";
        if (rank == 0) name = "performance";
        if (rank + 1 == groups.size()) name = "efficiency";
        kinds.push_back({std::move(name), rank, std::move(cpus)});
    }
    return kinds;
}

std::vector<Kind> by_capacity(const Topology& topology) {
    std::map<unsigned, CpuSet, std::greater<>> groups;
    for (const auto& cpu : topology.cpus)
        if (cpu.capacity) groups[*cpu.capacity].insert(cpu.id);
    return ranked(groups);
}

/// Small cores of hybrid processors share a second-level cache among several, the large ones have one each.
bool shares_unevenly(const Topology& topology) {
    CpuSet first_of_core;
    for (const auto& core : topology.cores)
        first_of_core.insert(core.first());
    const auto groups = topology.cache_groups(2);
    CpuSet covered;
    for (const auto& group : groups)
        covered |= group;
    if (groups.empty() || covered != topology.online) return false;
    const auto cores = [&](const CpuSet& group) { return (group & first_of_core).count(); };
    return std::ranges::any_of(groups, [&](const CpuSet& group) { return cores(group) != cores(groups[0]); });
}

std::uint64_t first_data_cache(const host::Root& root, unsigned cpu) {
    constexpr unsigned most = 4;
    for (unsigned index = 0; index < most; ++index) {
        const auto leaf =
            "devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index);
        if (root.sys().number(leaf + "/level") == 1 && root.sys().text(leaf + "/type") == "Data")
            return cache_size(root.sys().text(leaf + "/size"));
    }
    return 0;
}

/// What remains for hybrid processors under kernels that tell of neither: cores of one kind have equal
/// first-level caches.
std::vector<Kind> by_caches(const host::Root& root, const Topology& topology) {
    if (!shares_unevenly(topology)) return {};
    std::map<std::uint64_t, CpuSet, std::greater<>> groups;
    for (const auto& cpu : topology.cpus)
        groups[first_data_cache(root, cpu.id)].insert(cpu.id);
    if (groups.contains(0)) return {}; // not known of all
    return ranked(groups);
}

} // namespace

std::vector<Kind> read_kinds(const host::Root& root, const Topology& topology) {
    auto kinds = by_core_type(root, topology);
    if (kinds.empty()) kinds = by_capacity(topology);
    return kinds.empty() ? by_caches(root, topology) : kinds;
}

} // namespace affinityd::topology

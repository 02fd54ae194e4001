// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame/nearness.hpp"

namespace affinityd::experiments {

namespace {

unsigned first_of(const CpuSet& group, unsigned cpu) { return group.empty() ? cpu : group.first(); }

} // namespace

std::string_view name_of(Near near) {
    constexpr std::array names{"same core", "same LLC", "same node", "same socket", "across sockets"};
    return names[static_cast<std::size_t>(near)];
}

Nearness::Nearness(const topology::Topology& topology) {
    const unsigned count = topology.online.empty() ? 0 : topology.online.last() + 1;
    for (unsigned cpu = 0; cpu < count; ++cpu)
        groups_.push_back({cpu, cpu, cpu, cpu}); // one that is offline is near to none
    for (const auto& llc : topology.llc_groups())
        for (const unsigned cpu : llc)
            groups_[cpu].llc = llc.first();
    for (const unsigned cpu : topology.online) {
        groups_[cpu].core = first_of(topology.core_of(cpu), cpu);
        groups_[cpu].node = first_of(topology.node_cpus_of(cpu), cpu);
        // A machine that names no packages is one.
        const auto package = topology.package_of(cpu);
        groups_[cpu].package = package.empty() ? topology.online.first() : package.first();
    }
}

Nearness::Groups Nearness::of(unsigned cpu) const {
    return cpu < groups_.size() ? groups_[cpu] : Groups{cpu, cpu, cpu, cpu};
}

Near Nearness::between(unsigned a, unsigned b) const {
    const auto one = of(a), other = of(b);
    if (one.core == other.core) return Near::core;
    if (one.llc == other.llc) return Near::llc;
    if (one.package != other.package) return Near::across;
    return one.node == other.node ? Near::node : Near::package;
}

unsigned Nearness::llc_of(unsigned cpu) const { return of(cpu).llc; }
unsigned Nearness::core_of(unsigned cpu) const { return of(cpu).core; }

std::vector<CpuPair> Nearness::pairs(const CpuSet& cpus, Near near) const {
    std::vector<CpuPair> found;
    for (const unsigned b : cpus)
        for (const unsigned a : cpus) {
            if (a >= b) break;
            if (between(a, b) == near) found.push_back({a, b});
        }
    return found;
}

std::optional<CpuPair> Nearness::first_pair(const CpuSet& cpus, Near near) const {
    for (const unsigned a : cpus)
        for (const unsigned b : cpus)
            if (a < b && between(a, b) == near) return CpuPair{a, b};
    return std::nullopt;
}

CpuSet one_per_core(const topology::Topology& topology, const CpuSet& cpus) {
    CpuSet chosen;
    for (const unsigned cpu : cpus)
        if (!chosen.intersects(topology.core_of(cpu))) chosen.insert(cpu);
    return chosen;
}

} // namespace affinityd::experiments

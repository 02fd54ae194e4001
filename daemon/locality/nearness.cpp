// SPDX-License-Identifier: Apache-2.0
#include "locality/nearness.hpp"

#include <utility>

namespace affinityd::locality {

std::string_view name_of(NearLevel level) {
    constexpr std::array names{"CPU", "core", "LLC group", "node"};
    return names[static_cast<std::size_t>(level)];
}

Nearness::Nearness(const topology::Topology& topology) {
    CpuSet seen;
    const auto add = [&](NearLevel level, unsigned cpu, const CpuSet& group) {
        groups_[static_cast<std::size_t>(level)][cpu] = group.empty() ? cpu : group.first();
    };
    for (const auto& group : topology.llc_groups())
        for (const unsigned cpu : group)
            add(NearLevel::llc, cpu, group);
    for (const auto& cpu : topology.cpus) {
        add(NearLevel::core, cpu.id, topology.core_of(cpu.id));
        add(NearLevel::node, cpu.id, topology.node_cpus_of(cpu.id));
    }
}

unsigned Nearness::group(NearLevel level, unsigned cpu) const {
    const auto& groups = groups_[static_cast<std::size_t>(level)];
    const auto found = groups.find(cpu);
    return found == groups.end() ? cpu : found->second;
}

} // namespace affinityd::locality

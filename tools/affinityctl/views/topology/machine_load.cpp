// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/machine_load.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/topology/part_names.hpp"

#include <algorithm>

namespace affinityctl {

using affinityd::CpuSet;

namespace {

Claim& claim_of(CpuLoad& load, std::size_t tenant) {
    if (load.claims.empty() || load.claims.back().tenant != tenant) load.claims.push_back({.tenant = tenant});
    return load.claims.back();
}

void add_pin(CpuLoads& loads, const Pin& pin, std::size_t tenant, const CpuSet& cpus, bool narrow) {
    for (const unsigned cpu : cpus) {
        auto& load = loads[cpu];
        auto& claim = claim_of(load, tenant);
        claim.hold = std::max(claim.hold, narrow ? Hold::narrow : Hold::wide);
        ++(pin.interrupt ? claim.irqs : claim.pins);
        if (narrow) (pin.interrupt ? load.interrupts : load.tasks) += pin.tasks;
        if (load.first_pins.size() < CpuLoad::most_pins) load.first_pins.push_back({tenant, &pin});
    }
}

} // namespace

std::size_t CpuLoad::pins() const {
    std::size_t sum = 0;
    for (const auto& claim : claims)
        sum += claim.pins + claim.irqs;
    return sum;
}

CpuLoads loads_of(const MachineView& view) {
    CpuLoads loads;
    for (std::size_t i = 0; i < view.occupancy.tenants.size(); ++i) {
        const auto& tenant = view.occupancy.tenants[i];
        for (const unsigned cpu : tenant.cpus& view.topology.online)
            claim_of(loads[cpu], i);
        for (const auto& pin : tenant.pins) {
            const CpuSet cpus = pin.cpus & view.topology.online;
            if (!cpus.empty())
                add_pin(loads, pin, i, cpus, view.topology.core_of(cpus.first()).contains(cpus));
        }
    }
    return loads;
}

Badges badges_of(const MachineView& view, const Part& machine) {
    const PartSearch search(machine);
    Badges badges;
    for (std::size_t i = 0; i < view.occupancy.tenants.size(); ++i)
        for (const auto& pin : view.occupancy.tenants[i].pins) {
            const CpuSet cpus = pin.cpus & view.topology.online;
            const Part& part = search.smallest_holding(cpus);
            if (part.kind == Part::Kind::core || cpus.empty()) continue;
            auto& badge = badges[&part][i];
            (pin.interrupt ? badge.interrupts : badge.tasks) += pin.tasks;
        }
    return badges;
}

std::string amount_of(const Occupancy& occupancy, unsigned tasks) { return counted(tasks, occupancy.unit); }

} // namespace affinityctl

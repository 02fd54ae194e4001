// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/machine_load.hpp"

#include "affinityctl/values/counted.hpp"

#include <algorithm>

namespace affinityctl {

using affinityd::CpuSet;

CpuLoad load_of(const MachineView& view, unsigned cpu) {
    CpuLoad load;
    const CpuSet core = view.topology.core_of(cpu);
    for (std::size_t i = 0; i < view.occupancy.tenants.size(); ++i) {
        const auto& tenant = view.occupancy.tenants[i];
        auto hold = Hold::may;
        bool any = tenant.cpus.contains(cpu);
        for (const auto& pin : tenant.pins) {
            if (!pin.cpus.contains(cpu)) continue;
            any = true;
            const bool narrow = core.contains(pin.cpus);
            hold = std::max(hold, narrow ? Hold::narrow : Hold::wide);
            if (narrow) (pin.interrupt ? load.interrupts : load.tasks) += pin.tasks;
        }
        if (any) load.claims.push_back({i, hold});
    }
    return load;
}

Badges badges_of(const MachineView& view, const Part& machine) {
    Badges badges;
    for (std::size_t i = 0; i < view.occupancy.tenants.size(); ++i)
        for (const auto& pin : view.occupancy.tenants[i].pins) {
            const CpuSet cpus = pin.cpus & view.topology.online;
            const Part& part = smallest_holding(machine, cpus);
            if (part.kind == Part::Kind::core || cpus.empty()) continue;
            auto& badge = badges[&part][i];
            (pin.interrupt ? badge.interrupts : badge.tasks) += pin.tasks;
        }
    return badges;
}

std::string amount_of(const Occupancy& occupancy, unsigned tasks) { return counted(tasks, occupancy.unit); }

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/topology/machine_view.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace affinityctl {

/// How a policy holds a CPU: its tasks may go there, are pinned to a wider set, or are pinned to its core.
enum class Hold { may, wide, narrow };

struct Claim {
    std::size_t tenant = 0; ///< position in Occupancy::tenants
    Hold hold = Hold::may;
};

/// What is on one CPU.
struct CpuLoad {
    std::vector<Claim> claims;
    unsigned tasks = 0, interrupts = 0; ///< pinned to its core
};
[[nodiscard]] CpuLoad load_of(const MachineView& view, unsigned cpu);

struct Badge {
    unsigned tasks = 0, interrupts = 0;
};
/// By part and tenant, what is pinned to the part or to several of its cores.
using Badges = std::map<const Part*, std::map<std::size_t, Badge>>;
[[nodiscard]] Badges badges_of(const MachineView& view, const Part& machine);

/// "3 tasks", in the unit of the occupancy.
[[nodiscard]] std::string amount_of(const Occupancy& occupancy, unsigned tasks);

} // namespace affinityctl

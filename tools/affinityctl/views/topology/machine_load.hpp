// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/topology/machine_view.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityctl {

/// How a policy holds a CPU: its tasks may go there, are pinned to a wider set, or are pinned to its core.
enum class Hold { may, wide, narrow };

struct Claim {
    std::size_t tenant = 0; ///< position in Occupancy::tenants
    Hold hold = Hold::may;
    unsigned pins = 0, irqs = 0; ///< of the tenant, that hold the CPU
};

struct OwnedPin {
    std::size_t tenant = 0; ///< position in Occupancy::tenants
    const Pin* pin = nullptr;
};

/// What is on one CPU.
struct CpuLoad {
    static constexpr std::size_t most_pins = 16;
    std::vector<Claim> claims;          ///< by tenant
    unsigned tasks = 0, interrupts = 0; ///< pinned to its core
    std::vector<OwnedPin> first_pins;   ///< of all claims, at most `most_pins`
    [[nodiscard]] std::size_t pins() const;
};
/// By online CPU; one that nobody holds may be missing. The pins are those of the view, which must outlive
/// them.
using CpuLoads = std::unordered_map<unsigned, CpuLoad>;
[[nodiscard]] CpuLoads loads_of(const MachineView& view);

struct Badge {
    unsigned tasks = 0, interrupts = 0;
};
/// By part and tenant, what is pinned to the part or to several of its cores.
using Badges = std::map<const Part*, std::map<std::size_t, Badge>>;
[[nodiscard]] Badges badges_of(const MachineView& view, const Part& machine);

/// "3 tasks", in the unit of the occupancy.
[[nodiscard]] std::string amount_of(const Occupancy& occupancy, unsigned tasks);

} // namespace affinityctl

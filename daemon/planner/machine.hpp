// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "irq/irq.hpp"
#include "netdev/nic.hpp"
#include "topology/topology.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::planner {

/// What was read of the hardware, as one value. Tasks are not part of it: they come one by one.
struct Machine {
    topology::Topology topology;
    std::vector<netdev::Nic> nics;
    irq::InterruptTable irqs;
    std::optional<std::uint32_t> flow_entries =
        std::nullopt; ///< rps_sock_flow_entries; nothing: the kernel, or this network namespace, has none

    [[nodiscard]] const netdev::Nic*
    nic(std::string_view name) const; ///< nullptr if there is none of that name
};

/// Interface name → CPUs near it, for CPU-set expressions. An interface whose place is unknown is near every
/// online CPU.
[[nodiscard]] std::map<std::string, CpuSet, std::less<>> nic_cpus(const Machine& machine);
/// CPUs near one interface, cut to the online ones; all online CPUs if unknown or if none of them is online.
[[nodiscard]] CpuSet near_cpus(const Machine& machine, const netdev::Nic& nic);

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "irq/irq.hpp"
#include "netdev/nic.hpp"

#include <optional>
#include <vector>

namespace affinityctl {

/// What `irqs` and `nics` show, read without the daemon.
struct MachineIrqs {
    affinityd::irq::InterruptTable table;
    std::vector<affinityd::netdev::Nic> nics;
    std::optional<affinityd::irq::InterruptTable> before; ///< an earlier reading, for rates
    double seconds = 0;                                   ///< between the two
};

} // namespace affinityctl

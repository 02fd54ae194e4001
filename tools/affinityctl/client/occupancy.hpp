// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "topology/topology.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// Tasks or an interrupt that are, or would be, confined to some CPUs.
struct Pin {
    std::string label;      ///< "nginx, 2 threads", "eth0-TxRx-3 (IRQ 45)", "slot 1"
    affinityd::CpuSet cpus; ///< never empty
    bool interrupt = false;
    unsigned tasks = 1; ///< threads that this counts for
};

/// A policy on the machine.
struct Tenant {
    std::string policy;
    std::string model;      ///< "none", "irq", "process", "full"
    affinityd::CpuSet cpus; ///< all that it may use
    bool exclusive = false;
    std::vector<Pin> pins;
    std::string summary; ///< "2 processes, 4 threads" or "4 slots"; may be empty
};

/// Everything that has a place, for the tree, the table and the picture.
struct Occupancy {
    std::vector<Tenant> tenants;
    std::vector<std::string> remarks; ///< for people: what could not be shown or done
    std::string unit = "task";        ///< what Pin::tasks counts
    std::string source; ///< "as the daemon has it", "as policy redis would have it"; "" if nothing is known
};

/// Which of the masks in a status: those that tasks and interrupts have, or those that policies want.
enum class Masks { present, wanted };

/// From the daemon's GetStatus, or the plan for a recorded machine. Unexpected parts of it are skipped.
[[nodiscard]] Occupancy occupancy_of_status(const nlohmann::json& status, Masks masks = Masks::present);

/// Each online CPU with the tasks and interrupts that sit on it: `seat_fields`. A task that may run on
/// several CPUs counts for a part on each.
[[nodiscard]] nlohmann::json seats_json(const Occupancy& occupancy,
                                        const affinityd::topology::Topology& topology);

} // namespace affinityctl

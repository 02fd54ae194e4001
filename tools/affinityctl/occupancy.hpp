// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "netdev/nic.hpp"
#include "policy/diagnostic.hpp"
#include "topology/topology.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityctl {

/// Somebody who is, or would be, kept on some CPUs.
struct Pin {
    std::string label;      ///< "nginx, 2 threads", "eth0-TxRx-3 (IRQ 45)", "seat 1"
    affinityd::CpuSet cpus; ///< never empty
    bool interrupt = false;
    unsigned tasks = 1; ///< threads that this stands for
};

/// One policy on the machine.
struct Tenant {
    std::string policy;
    std::string model;      ///< "none", "irq", "process", "full"
    affinityd::CpuSet cpus; ///< all that it may use
    bool exclusive = false;
    std::vector<Pin> pins;
    std::string summary; ///< "2 processes, 4 threads" or "4 seats"; may be empty
};

/// Who is where, for the tree, the table and the picture.
struct Occupancy {
    std::vector<Tenant> tenants;
    std::vector<std::string> remarks; ///< what could not be shown or done, for people
    std::string unit = "task";        ///< what Pin::tasks counts
    std::string source; ///< "as the daemon has it", "as policy redis would have it"; empty if nobody is known
};

/// From the daemon's GetStatus. Anything in it that is not as expected is passed over.
[[nodiscard]] Occupancy occupancy_of_status(const nlohmann::json& status);

struct PolicyRequest {
    std::vector<std::string> names;   ///< of policies, or paths of files; empty: all
    std::vector<std::string> folders; ///< instead of the usual ones
};

/// What policies would occupy on a machine, without a daemon: their CPUs, the seats that tasks are dealt, and
/// where the interrupts of their interfaces would go. Which tasks there are is not asked. Faults of the files
/// are added to `faults`.
[[nodiscard]] affinityd::Result<Occupancy>
occupancy_of_policies(const PolicyRequest& request, const affinityd::host::Root& root,
                      const affinityd::topology::Topology& topology,
                      const std::vector<affinityd::netdev::Nic>& nics,
                      std::vector<affinityd::policy::Diagnostic>& faults);

} // namespace affinityctl

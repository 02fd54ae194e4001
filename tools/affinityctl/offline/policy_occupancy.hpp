// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/occupancy.hpp"
#include "base/error.hpp"
#include "netdev/nic.hpp"
#include "policy/diagnostic.hpp"
#include "topology/topology.hpp"

#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityctl {

struct PolicyRequest {
    std::vector<std::string> names;   ///< of policies, or paths of files; empty: all
    std::vector<std::string> folders; ///< that are read; empty: the standard ones
};

/// What policies would occupy on a machine, without a daemon: their CPUs, the slots for their tasks, and
/// where the interrupts of their interfaces would go. The tasks that exist are not read. Faults of the files
/// are added to `faults`.
[[nodiscard]] affinityd::Result<Occupancy>
occupancy_of_policies(const PolicyRequest& request, const affinityd::host::Root& root,
                      const affinityd::topology::Topology& topology,
                      const std::vector<affinityd::netdev::Nic>& nics,
                      std::vector<affinityd::policy::Diagnostic>& faults);

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/task.hpp"
#include "netdev/nic.hpp"
#include "policy/diagnostic.hpp"
#include "policy/policy.hpp"
#include "topology/topology.hpp"

#include <vector>

namespace affinityd::planner {

/// What is wrong with policies on one machine, beyond what policy::read_policies could know:
/// error: a CPU, node, package, die, cluster, cache group, core or kind that is not there; a set that can
/// hold no CPU here; CPUs claimed by two policies with `exclusive: true`; a policy whose CPUs are all claimed
/// by another. warning: a CPU or a whole set that is offline now; an interface that is not there; `near` that
/// names no CPU; a claim that leaves no CPU to anybody else. Pure; the findings have no source lines
/// (policy::add_source_lines) and stand in the set's order.
[[nodiscard]] std::vector<policy::Diagnostic> check_on_machine(const policy::PolicySet& policies,
                                                               const topology::Topology& topology,
                                                               const std::vector<netdev::Nic>& nics);

/// A note for each policy that takes none of these processes. Asks dear facts of processes only where a
/// policy does.
[[nodiscard]] std::vector<policy::Diagnostic>
check_matches(const policy::PolicySet& policies,
              const std::vector<const inventory::ProcessFacts*>& processes);

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netdev/nic.hpp"
#include "policy/diagnostic.hpp"
#include "policy/policy.hpp"
#include "topology/topology.hpp"

#include <vector>

namespace affinityd::planner {

/// Finds what is wrong with policies on one machine, beyond what policy::read_policies can know. Errors: a
/// CPU, node, package, die, cluster, cache group, core or kind that the machine does not have; a set that can
/// never hold a CPU here; CPUs that two policies claim with `exclusive: true`; a policy whose CPUs are all
/// claimed by another. Warnings: a CPU or a whole set that is offline now; an interface that the machine does
/// not have; a `near` that names no online CPU; a claim that leaves no CPU to other tasks; CPUs that a policy
/// or thread rule names and another policy claims. Notes: a policy that restricts nothing here. Pure. The
/// findings have no source lines; policy::add_source_lines adds them.
[[nodiscard]] std::vector<policy::Diagnostic> check_on_machine(const policy::PolicySet& policies,
                                                               const topology::Topology& topology,
                                                               const std::vector<netdev::Nic>& nics);

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/task.hpp"
#include "machine/machine.hpp"
#include "policy/diagnostic.hpp"
#include "policy/policy.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace affinityd::planner {

/// Names that a machine has, whether or not a process has them now.
struct KnownNames {
    std::vector<std::string> units;
    std::vector<std::string> users;
};

/// The processes that policies match now.
struct Matches {
    std::vector<std::size_t> processes;       ///< how many, in the set's order
    std::vector<std::vector<int>> pids;       ///< the first few of these
    std::vector<std::set<std::string>> units; ///< of these
    std::vector<policy::Diagnostic> notes;    ///< of policies that match none
};

/// Matches processes against policies. A policy that matches none gets a note, with a hint where another
/// policy takes those that it would match, or where a unit or user that it names is not here and another one
/// has a similar name. Expensive facts are read only where a policy asks for them.
[[nodiscard]] Matches check_matches(const policy::PolicySet& policies,
                                    const std::vector<const inventory::ProcessFacts*>& processes,
                                    const KnownNames& known = {});

/// More that is known where policies are checked.
struct CheckedHere {
    /// Policies that were not in force as they are now: of two at odds theirs is refused.
    std::set<std::string, std::less<>> newcomers = {};
    /// Policies whose processes use a library that counts CPUs again and again, with that library's name.
    std::map<std::string, std::string, std::less<>> counting = {};
};

/// Finds what is wrong with policies on one machine, beyond what policy::read_policies can know. Errors: a
/// CPU, node, package, die, cluster, cache group, core or kind that the machine does not have; a set that can
/// never hold a CPU here; CPUs that two policies claim with `exclusive`, or claims that leave no CPU
/// to other tasks; a policy whose CPUs are all claimed by another. Warnings: a CPU or a whole set that is
/// offline now; an interface that the machine does not have, or whose interrupts cannot all be placed; a
/// `near` that names no online CPU; CPUs that a policy or thread rule names and another policy claims. Notes:
/// a policy that restricts nothing here; threads that are not where the interrupts go; programs that find
/// fewer CPUs than they have. Pure. The findings have no source lines; policy::add_source_lines adds them.
[[nodiscard]] std::vector<policy::Diagnostic> check_on_machine(const policy::PolicySet& policies,
                                                               const machine::Machine& machine,
                                                               const CheckedHere& here = {});

} // namespace affinityd::planner

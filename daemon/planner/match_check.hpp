// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/task.hpp"
#include "policy/diagnostic.hpp"
#include "policy/policy.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace affinityd::planner {

/// Names that a machine has, whether or not a process has them now.
struct KnownNames {
    std::vector<std::string> units;
    std::vector<std::string> users;
};

/// What policies match now.
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

} // namespace affinityd::planner

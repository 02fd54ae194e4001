// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/task.hpp"
#include "planner/matcher.hpp"
#include "policy/policy.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::planner {

/// The condition that decided against a process.
struct Failure {
    std::string field;  ///< key as in the policy file; "not" or "any" for a group
    std::string wanted; ///< patterns as written
    std::string found;  ///< what the process has; "" if it has no such thing
};

/// True if a selector holds for a process. Conditions on cheap facts are tested first, whatever order the
/// file has.
[[nodiscard]] bool holds(const policy::Selector& selector, const inventory::ProcessFacts& process,
                         const Lineage& lineage);
/// True if the selector would hold for some arguments, ports and ancestors' policies of the process: it may
/// come to hold without an event that says so.
[[nodiscard]] bool may_hold(const policy::Selector& selector, const inventory::ProcessFacts& process,
                            const Lineage& lineage);
/// The condition that decided against the process; no value if the selector holds.
[[nodiscard]] std::optional<Failure> first_failure(const policy::Selector& selector,
                                                   const inventory::ProcessFacts& process,
                                                   const Lineage& lineage);

/// What `unit:` can be compared with: the innermost systemd unit of the process's cgroup, and each slice
/// around it, those that a user made among them.
[[nodiscard]] std::vector<std::string> unit_names(const inventory::ProcessFacts& process);

} // namespace affinityd::planner

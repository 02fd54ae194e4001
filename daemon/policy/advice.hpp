// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/diagnostic.hpp"
#include "policy/policy.hpp"

#include <vector>

namespace affinityd::policy {

/// True if any user can make a process for which the policy's conditions hold: by a name, by arguments, by a
/// program in a folder of his own. False for a policy without conditions: it means everybody.
/// affinityd.policy(5) has the table.
[[nodiscard]] bool is_forgeable(const Policy& policy, const PolicySet& set);

/// What is no fault, but is good to know before a policy is installed. Notes: conditions that any user can
/// meet; `exclusive`, which is no fence. Warnings: the same conditions where interrupts are moved or
/// others' tasks are kept off CPUs. In the set's order, without source lines.
[[nodiscard]] std::vector<Diagnostic> advice(const PolicySet& set);

} // namespace affinityd::policy

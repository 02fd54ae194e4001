// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/diagnostic.hpp"
#include "policy/pattern.hpp"
#include "policy/policy.hpp"

#include <vector>

namespace affinityd::policy {

/// The one total order in which policies are asked: `default: true` last, then priority (higher first),
/// specificity (higher first), name (byte by byte). No two policies of a set are equal in it, since names are
/// unique.
[[nodiscard]] bool comes_before(const Policy& a, const Policy& b);

/// "*" and its repetitions.
[[nodiscard]] bool matches_everything(const Pattern& pattern);

/// True if the conditions leave no process out, or only those that `not` names: the file hardly says
/// whom the policy is for.
[[nodiscard]] bool is_for_all(const Selector& selector);

/// Compares policies with each other without a machine: names in `parent` that no policy has,
/// rings of `parent` that nothing can enter, policies that an earlier one leaves nothing to. The findings
/// have no source lines yet.
void check_set(const PolicySet& set, std::vector<Diagnostic>& out);

/// True if any user can make a process for which the policy's conditions hold: by a name, by arguments, by a
/// program in a folder of his own. False for a policy without conditions: it is for all processes.
/// affinityd-security(7) has the table.
[[nodiscard]] bool is_forgeable(const Policy& policy, const PolicySet& set);

/// Advice for a policy without faults, before it is installed. Notes: conditions that any user can
/// meet; `exclusive`, which is no fence. Warnings: the same conditions where interrupts are moved or
/// others' tasks are kept off CPUs. In the set's order, without source lines.
[[nodiscard]] std::vector<Diagnostic> advice(const PolicySet& set);

/// True if some policy has the word in cpus, near or rps.
[[nodiscard]] bool has_word(const PolicySet& policies, CpuExpr::Op word);

} // namespace affinityd::policy

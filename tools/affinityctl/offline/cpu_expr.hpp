// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "machine/machine.hpp"
#include "policy/cpu_expr.hpp"

#include <expected>
#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityctl {

/// The fault of an expression, and its place. Length 0: the fault is not in the expression's text.
using CpuExprFault = affinityd::policy::CpuExprError;

[[nodiscard]] CpuExprFault not_in_text(std::string message, std::string hint = {});

/// The CPUs of an expression on this machine. A bare `nic` means the interfaces `own_nics`, or, if there are
/// none, all that have a device, provided that the same CPUs are near each. Interfaces are read into
/// `machine` if `expr` needs them.
[[nodiscard]] std::expected<affinityd::CpuSet, CpuExprFault>
evaluate_cpu_expr(const affinityd::policy::CpuExpr& expr, const std::vector<std::string>& own_nics,
                  affinityd::machine::Machine& machine, const affinityd::host::Root& root);

} // namespace affinityctl

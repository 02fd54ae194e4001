// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/cpu_expr.hpp"
#include "topology/topology.hpp"

#include <expected>
#include <functional>
#include <map>
#include <string>

namespace affinityd::planner {

/// What an expression stands for on a machine: online CPUs only, except for CPU numbers that are written out,
/// which must exist (be possible) and are kept also while offline. `nics`: interface -> CPUs near it, for
/// nic:NAME, where NAME may be a glob; `own`: what a bare `nic` means. The error names the offending part by
/// its place in the text.
[[nodiscard]] std::expected<CpuSet, policy::CpuExprError>
evaluate(const policy::CpuExpr& expr, const topology::Topology& topology,
         const std::map<std::string, CpuSet, std::less<>>& nics, const CpuSet& own);

} // namespace affinityd::planner

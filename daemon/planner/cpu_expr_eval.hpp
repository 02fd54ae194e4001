// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/cpu_expr.hpp"
#include "topology/topology.hpp"

#include <expected>
#include <functional>
#include <map>
#include <string>

namespace affinityd::planner {

/// The CPUs that an expression stands for on a machine. They are online, except for CPU numbers that are
/// written out: those must be possible, and are kept while they are offline. `nics`: the CPUs near each
/// interface, for nic:NAME, where NAME may be a glob. `own`: what a bare `nic` stands for. The error gives
/// the offending part by its place in the text.
[[nodiscard]] std::expected<CpuSet, policy::CpuExprError>
evaluate(const policy::CpuExpr& expr, const topology::Topology& topology,
         const std::map<std::string, CpuSet, std::less<>>& nics, const CpuSet& own);

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "machine/latency_matrix.hpp"
#include "policy/policy.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// What a daemon that starts on a machine, recorded or this one, would change, as GetPlan answers it, and
/// where all that is under policy would be then, as GetStatus has it ("policies", "processes", "queues").
/// Sockets are not read: which interfaces serve a process (`nics: auto`) is not known, which "notes" tell.
[[nodiscard]] affinityd::Result<nlohmann::json> plan_recording(const affinityd::policy::PolicySet& policies,
                                                               const std::string& folder,
                                                               affinityd::machine::KnownLatencies latencies);

} // namespace affinityctl

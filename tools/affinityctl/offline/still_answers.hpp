// SPDX-License-Identifier: Apache-2.0
// Answers of a daemon, as one would give them on a machine that stands still.
#pragma once

#include "affinityctl/offline/still_machine.hpp"
#include "base/error.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// All that a daemon that starts on the machine would change, as GetPlan answers it, and
/// where all that is under policy would be then, as GetStatus has it ("policies", "processes", "queues").
/// Sockets are not read: which interfaces serve a process (`nics: auto`) is not known, which "notes" tell.
[[nodiscard]] nlohmann::json plan_of(StillMachine& still);
/// Policies, and what is under them, as GetStatus has them.
[[nodiscard]] nlohmann::json state_of(const StillMachine& still);
/// Why a thread, an interface or an interrupt of a still machine would be where it would be, as Explain
/// answers it. `subject`: a PID, a TID, the name of an interface, irq:NUMBER or the label of an interrupt. An
/// Error if the machine has nothing of that name.
[[nodiscard]] affinityd::Result<nlohmann::json> explain(StillMachine& still, const std::string& subject);

} // namespace affinityctl

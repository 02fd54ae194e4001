// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

class StillMachine;

/// Why a thread, an interface or an interrupt of a still machine would be where it would be, as Explain
/// answers it. `subject`: a PID, a TID, the name of an interface, irq:NUMBER or the label of an interrupt. An
/// Error if the machine has nothing of that name.
[[nodiscard]] affinityd::Result<nlohmann::json> explain_recorded(StillMachine& still,
                                                                 const std::string& subject);

/// Policies, and what is under them, as GetStatus has them.
[[nodiscard]] nlohmann::json recorded_state(const StillMachine& still);

} // namespace affinityctl

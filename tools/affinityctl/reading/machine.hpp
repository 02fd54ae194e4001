// SPDX-License-Identifier: Apache-2.0
// Reads what doctor examines of this machine or a recording.
#pragma once

#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/survey/doctor.hpp"
#include "host/root.hpp"

#include <nlohmann/json.hpp>

namespace affinityctl {

struct ReadMachine {
    survey::Examined seen;     ///< refers to the machine that it was read of
    bool lacks_memory = false; ///< the recording has no memory of processes
};

/// `status`: of the daemon, or null.
[[nodiscard]] ReadMachine read_machine(StillMachine& still, const affinityd::host::Root& root,
                                       const nlohmann::json& status);

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/match_check.hpp"

#include <string>

namespace affinityd::host {
class Root;
}

namespace affinityctl {

/// Units that the machine has files of, and the users of etc/passwd. A recording has neither.
[[nodiscard]] affinityd::planner::KnownNames read_known_names(const affinityd::host::Root& root);

/// CPUAffinity= of a unit's files on this machine; "": it has none.
[[nodiscard]] std::string unit_affinity(const std::string& unit);

} // namespace affinityctl

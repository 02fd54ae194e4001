// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/match_check.hpp"

namespace affinityd::host {
class Root;
}

namespace affinityctl {

/// Units that the machine has files of, and the users of etc/passwd. A recording has neither.
[[nodiscard]] affinityd::planner::KnownNames read_known_names(const affinityd::host::Root& root);

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace affinityctl {

/// Where the daemon looks for policies if nothing else is said, lowest precedence first, as with systemd's units.
inline std::vector<std::string> standard_policy_folders() {
    return {"/usr/lib/affinityd/policies.d", "/run/affinityd/policies.d", "/etc/affinityd/policies.d"};
}

} // namespace affinityctl

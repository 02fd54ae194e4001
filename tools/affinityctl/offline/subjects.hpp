// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityctl {

/// Processes of a systemd unit, service, scope or slice, ascending; empty: there are none.
[[nodiscard]] affinityd::Result<std::vector<int>> processes_of_unit(const affinityd::host::Root& root,
                                                                    const std::string& unit);
/// Processes of this name, ascending.
[[nodiscard]] affinityd::Result<std::vector<int>> processes_of_name(const affinityd::host::Root& root,
                                                                    const std::string& name);

} // namespace affinityctl

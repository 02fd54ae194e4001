// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/testbed/network_space.hpp"
#include "base/error.hpp"

#include <string>
#include <vector>

namespace affinityd::ttcp {

/// Turns on NAPI threads for an interface of this space that is up, and finds their TIDs. Other namespaces
/// may have interfaces of the same name, so only threads that were not there before count.
[[nodiscard]] Result<std::vector<int>> start_napi_threads(const host::Root& root, const NetworkSpace& space,
                                                          const std::string& name);

} // namespace affinityd::ttcp

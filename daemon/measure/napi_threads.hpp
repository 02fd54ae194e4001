// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "measure/network_space.hpp"

#include <string>
#include <vector>

namespace affinityd::measure {

/// Gives an interface of this space, which is up, NAPI threads and finds their tids. Names of interfaces
/// repeat in other namespaces: only threads that were not there before are taken for its own.
[[nodiscard]] Result<std::vector<int>> start_napi_threads(const host::Root& root, const NetworkSpace& space,
                                                          const std::string& name);

} // namespace affinityd::measure

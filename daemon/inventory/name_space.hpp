// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

#include <cstdint>
#include <string>

namespace affinityd::inventory {

/// The inode that identifies a process's namespace, namespaces(7). `process`: "self" or a number; `kind`:
/// "net", "pid". 0: the process is gone, or may not be looked at.
[[nodiscard]] std::uint64_t name_space(const host::Root& root, const std::string& process,
                                       const std::string& kind);

} // namespace affinityd::inventory

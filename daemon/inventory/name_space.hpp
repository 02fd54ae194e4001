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

/// True if the process is the first one of a PID namespace below ours, to which others there are given when
/// their parents end: NSpid of /proc/PID/status, pid_namespaces(7).
[[nodiscard]] bool is_namespace_init(const host::Root& root, int pid);

} // namespace affinityd::inventory

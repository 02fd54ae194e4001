// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace affinityd::host {
class Root;
}

namespace affinityd::inventory {

/// The session of a process, getsid(2): field 6 of /proc/PID/stat. No value: the process is gone.
[[nodiscard]] std::optional<int> read_session(const host::Root& root, int pid);

/// True if the process is the first one of a PID namespace below ours, to which others there are given when
/// their parents end: NSpid of /proc/PID/status, pid_namespaces(7).
[[nodiscard]] bool is_namespace_init(const host::Root& root, int pid);

} // namespace affinityd::inventory

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::inventory {

/// What files of a process say, each at most `longest` bytes; no value for one that cannot be read. Each may
/// make the reader wait as long as the process likes, and is read patiently, see host::patiently(): its
/// fdinfo/N of an epoll for what that watches, its task/TID/syscall for its mm while it executes a program.
/// A process that is avoided is not asked, and what comes too late is not there. `names`: below /proc/PID.
[[nodiscard]] std::vector<std::optional<std::string>>
read_patiently(const host::Root& root, int pid, std::vector<std::string> names, std::size_t longest);

} // namespace affinityd::inventory

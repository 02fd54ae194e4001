// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

#include <string>

namespace affinityd::inventory {

/// Where a process's program was when it was started, by the link /proc/PID/exe.
struct Program {
    std::string path;        ///< "": unknown
    bool is_removed = false; ///< deleted, or replaced by another file, since
};
/// From the text of the link, which ends in " (deleted)" for a removed file; proc_pid_exe(5).
[[nodiscard]] Program program_of(std::string link);

/// False if the program is known to be another file than the one that this machine has at its path, or had
/// there when it was started. The path is the one in the mount namespace that the program was opened in, and
/// any user can make one, and mount any file at any path in it. True on a recording. `process`: its folder
/// below /proc. Asks no file system that a user may have made: what such a one has is not believed. An Error:
/// there was no descriptor or memory left to find out.
[[nodiscard]] Result<bool> is_program_of_this_machine(const host::Root& root, const host::Dir& process,
                                                      const Program& program);

} // namespace affinityd::inventory

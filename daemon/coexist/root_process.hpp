// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace affinityd::host {
class Root;
}

namespace affinityd::coexist {

/// True if all four user ids of the process (real, effective, saved, file system) are root's, or those of
/// this process's own user. A name alone proves nothing: any user can name a process as he likes. A set-user-
/// ID program keeps its caller as real user, so all four count.
[[nodiscard]] bool is_roots_process(const host::Root& root, int pid);

/// File name of the program that the process runs, without its folder and without " (deleted)". No value if
/// the kernel does not tell.
[[nodiscard]] std::optional<std::string> program_name(const host::Root& root, int pid);

/// True if every number after "Uid:" in the text of /proc/PID/status is 0 or `own`; proc_pid_status(5).
[[nodiscard]] bool has_only_trusted_ids(std::string_view status, unsigned own);

} // namespace affinityd::coexist

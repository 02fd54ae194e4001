// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

#include <cstdint>
#include <string>

namespace affinityd::host {

/// Folder of the running program, with a '/' at its end; "" if the kernel does not tell.
[[nodiscard]] std::string program_folder();

/// Root becomes the user nobody (65534) without groups; all users give up all capabilities (capabilities(7)),
/// and the way to new privileges (PR_SET_NO_NEW_PRIVS, prctl(2)). False: this process still is what it was,
/// at least in part, and must not go on.
[[nodiscard]] bool drop_privileges();
/// False where this process is root without the capability to become another user.
[[nodiscard]] bool can_drop_privileges();

/// False for a root that cannot read all below /proc of other users' processes, as their program and sockets:
/// CAP_SYS_PTRACE or CAP_DAC_READ_SEARCH is missing.
[[nodiscard]] bool sees_all_processes();

/// True if this machine calls itself a container: process 1 has the variable `container`, as systemd's
/// container interface wants it (podman, LXC, systemd-nspawn), or something is mounted from docker's folder.
/// A container of another kind is taken for a machine.
[[nodiscard]] bool is_container(const Root& root);

/// Raises the soft limit of open files to the hard one, `most` at most (what the unit sets; systemd lets most
/// services begin with 1,024, for the sake of select(2), which we do not use). Never lowers it; children
/// inherit it. 0 or errno: a wish, not a need. setrlimit(2).
int allow_many_open_files(std::uint64_t most = 65'536);

/// Clock ticks a second, in which the kernel counts for users: sysconf(3), _SC_CLK_TCK. At least 1.
[[nodiscard]] std::uint64_t ticks_a_second();
/// Clock ticks since boot, as the start times of tasks, proc_pid_stat(5).
[[nodiscard]] std::uint64_t ticks_since_boot();
/// A text that the kernel makes anew with each boot: boot_id of random(4). "" if it cannot be read.
[[nodiscard]] const std::string& boot_id();

} // namespace affinityd::host

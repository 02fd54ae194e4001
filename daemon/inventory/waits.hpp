// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

namespace affinityd::inventory {

/// The listeners that a process has open, and which of its threads wait for connections.
struct ListenerUse {
    struct Wait {
        int thread = 0;
        std::uint64_t listener = 0; ///< inode
        bool is_sure = true;        ///< false: it polls, and this listener may be one of those
    };
    std::map<std::uint64_t, int> held{}; ///< inode -> descriptor
    std::vector<Wait> waits{};
};

/// Reads that of a process. `listeners`: inodes of all that matter. A thread waits on a listener if it waits
/// on an epoll set that holds it (the only thread of a process: if there is such a set), or in accept(2). The
/// only thread of a process that is in poll(2) or select(2) may wait on each that it has open. An Error: its
/// descriptors cannot be listed. Takes some milliseconds at most: the first 1,024 descriptors are looked at,
/// and 256 threads.
[[nodiscard]] Result<ListenerUse> read_listener_use(const host::Root& root, int pid,
                                                    const std::set<std::uint64_t>& listeners);

/// True if the process has that very socket open still.
[[nodiscard]] bool holds_socket(const host::Root& root, int pid, int descriptor, std::uint64_t inode);

/// A member of an epoll set: a line of its fdinfo, proc_pid_fdinfo(5).
struct EpollMember {
    int descriptor = -1;     ///< when it was added; the process may have closed it since
    std::uint64_t inode = 0; ///< 0: this kernel does not tell
};
[[nodiscard]] std::vector<EpollMember> parse_epoll_members(std::string_view text);

/// The system call in which a thread waits: a line of /proc/PID/task/TID/syscall, proc_pid_syscall(5).
struct WaitingCall {
    long number = -1; ///< -1: it runs, or waits in none
    std::uint64_t first = 0;
};
[[nodiscard]] WaitingCall parse_waiting_call(std::string_view text);

} // namespace affinityd::inventory

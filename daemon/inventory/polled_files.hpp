// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace affinityd::inventory {

/// One file that an epoll watches.
struct PolledFile {
    int number = 0;          ///< the descriptor by which it was added, in whoever added it
    std::uint64_t inode = 0; ///< of a socket: what /proc/PID/fd shows as "socket:[N]"
    friend bool operator==(const PolledFile&, const PolledFile&) = default;
};

/// The `tfd:` lines of an epoll's /proc/PID/fdinfo/N, ascending by inode; lines that are malformed are passed
/// over. Source: Documentation/filesystems/proc.rst, 3.8.
[[nodiscard]] std::vector<PolledFile> parse_polled(std::string_view fdinfo);

/// A system call in which a thread waits for connections or for data.
struct WaitingCall {
    enum class Kind : std::uint8_t {
        epoll,  ///< `number` is an epoll
        accept, ///< `number` is a listener
        read    ///< `number` is a connection, or another file
    };
    Kind kind = Kind::epoll;
    int number = 0; ///< its first argument, a descriptor
    friend bool operator==(const WaitingCall&, const WaitingCall&) = default;
};

/// /proc/PID/task/TID/syscall. No value: it runs, or is in another call. Source: proc_pid_syscall(5).
[[nodiscard]] std::optional<WaitingCall> parse_waiting(std::string_view syscall);

} // namespace affinityd::inventory

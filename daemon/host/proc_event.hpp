// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace affinityd::host {

/// One event of the kernel's process connector; linux/cn_proc.h, drivers/connector/cn_proc.c. Numbers are
/// those of the initial pid namespace and greater than 0.
struct ProcEvent {
    enum class Kind : std::uint8_t {
        fork, ///< a process or a thread was born; it still has its parent's name and mask
        exec, ///< the thread that called it has become the main thread
        ids,  ///< a thread has another user or group: setuid(2), setgid(2) and their kin
        comm, ///< named by prctl(PR_SET_NAME) or a write to its comm file; not by exec
        exit
    };
    Kind kind = Kind::fork;
    int pid = 0;        ///< process (tgid) it happened to; of a fork: the new one's
    int tid = 0;        ///< its thread; equal to pid for the main thread
    int parent_pid = 0; ///< fork: process that forked; exit: the parent process, where the kernel tells it
    std::array<char, 16> name{};    ///< comm: the new name, any bytes, NUL-terminated unless full
    std::uint64_t timestamp_ns = 0; ///< since boot, CLOCK_MONOTONIC

    [[nodiscard]] std::string_view comm() const;
    [[nodiscard]] bool is_thread() const { return pid != tid; }
    friend bool operator==(const ProcEvent&, const ProcEvent&) = default;
};

/// One datagram of the connector: netlink header, cn_msg, proc_event. Every length is checked. No value:
/// another message, another kind of event, or cut short.
[[nodiscard]] std::optional<ProcEvent> parse_proc_event(std::span<const std::byte> datagram);

/// The connector's answer to a subscription: the request's acknowledgement number plus one, and an errno
/// value (0 granted).
struct ProcAck {
    std::uint32_t number = 0;
    std::uint32_t error = 0;
};
[[nodiscard]] std::optional<ProcAck> parse_proc_ack(std::span<const std::byte> datagram);

} // namespace affinityd::host

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/usage.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace affinityd::ttcp {

/// What one stream moves. The first bound that is reached ends it; 0 means no such bound. A transmitter needs
/// at least one of the three; a receiver also ends when its peer closes.
struct Load {
    std::size_t buffer_bytes = 131072; ///< one send(2) or recv(2), 1 B to 64 MiB
    std::uint64_t buffers = 0;         ///< how many of them
    double seconds = 0;                ///< wall time
    std::uint64_t bytes = 0;           ///< bytes on the wire
    double stall_seconds = 10;         ///< without progress; then the peer is given up
    /// A receiver gives up a peer that sends less within `stall_seconds`; 0: any progress will do.
    std::uint64_t least_bytes = 0;
    bool (*has_link)(int socket) =
        nullptr; ///< called in each second without progress; false ends the stream with End::network
    /// Called when all is prepared, before the clock starts: work of many at once between a common start and
    /// their first bytes has the scheduler part them from their peers, for seconds.
    std::function<void()> wait{};
    int input = -1;  ///< transmit what is read here instead of a pattern; -1: the pattern
    int output = -1; ///< write what was received here; -1: drop it
};

/// How a stream ended. All but `whole` come with an errno value.
enum class End : std::uint8_t {
    whole,   ///< everything that was requested, or the peer closed in good order
    peer,    ///< the peer reset the connection or shut it early
    stalled, ///< no progress within stall_seconds
    network, ///< the path failed: link down, no route
    local,   ///< a fault on this side (standard output full, no memory)
};

/// What one end of one stream did. Plain bytes: it crosses a pipe between two processes of the same program.
struct StreamUse {
    End end = End::whole;
    bool is_local = false; ///< both ends have the same address: no NIC is involved; set by the code that made
                           ///< the connection
    int code = 0;          ///< errno value, 0 with End::whole
    std::uint64_t bytes = 0;
    std::uint64_t calls = 0; ///< send(2) or recv(2) calls that moved bytes
    double started = 0;      ///< CLOCK_MONOTONIC seconds; for a receiver, when its first bytes came
    double ended = 0;
    Usage usage;                              ///< of this process between the two
    std::optional<std::uint64_t> retransmits; ///< segments sent again (TCP_INFO tcpi_total_retrans), tcp(7)
};

/// Moves bytes over a connected, blocking TCP socket until a bound or the end. The socket stays open. Never
/// raises SIGPIPE.
[[nodiscard]] StreamUse transmit(int socket, const Load& load, Meter& meter);
[[nodiscard]] StreamUse receive(int socket, const Load& load, Meter& meter);

} // namespace affinityd::ttcp

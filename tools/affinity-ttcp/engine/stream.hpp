// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/usage.hpp"
#include "measure/result.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>

namespace affinityd::ttcp {

/// The work of one stream. The first bound that is reached ends it; 0 means no such bound. A transmitter
/// needs at least one of the three; a receiver also ends when its peer closes.
struct Load {
    std::size_t buffer_bytes = 131072; ///< one send(2) or recv(2), 1 B to 64 MiB
    std::uint64_t buffers = 0;         ///< how many of them
    double seconds = 0;                ///< wall time
    std::uint64_t bytes = 0;           ///< bytes on the wire
    double stall_seconds = 10;         ///< without progress; then the peer is given up
    /// A receiver gives up a peer that sends less within `stall_seconds`; 0: any progress will do.
    std::uint64_t least_bytes = 0;
    bool (*has_link)(int socket) =
        nullptr; ///< called in each second without progress; false ends the stream with Outcome::link_lost
    /// Called when all is prepared, before the clock starts: work of many at once between a common start and
    /// their first bytes has the scheduler part them from their peers, for seconds.
    std::function<void()> wait{};
    int input = -1;  ///< transmit what is read here instead of a pattern; -1: the pattern
    int output = -1; ///< write what was received here; -1: drop it
};

/// The figures of one end of one stream. Plain bytes: it crosses a pipe between two processes of the same
/// program.
struct StreamUse {
    measure::Outcome end = measure::Outcome::done; ///< peer_gone: it reset the connection or shut it early
    bool is_local = false; ///< both ends have the same address: no NIC is involved; set by the code that made
                           ///< the connection
    int code = 0;          ///< errno value, 0 with done
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

/// How many latencies fell into which range. Plain bytes, because a process writes it into memory that its
/// parent reads. Ranges are as wide as their value's 128th part, so that a quantile is right to 0.8 %;
/// below 256 ns each nanosecond has its own. Latencies of more than 18 minutes count as that.
class LatencyCounts {
  public:
    void add(std::uint64_t nanoseconds);
    LatencyCounts& operator+=(const LatencyCounts& other);
    [[nodiscard]] std::uint64_t total() const { return total_; }
    /// In nanoseconds: the latency that `part` (0 to 1) of all do not exceed, within its range as if those in
    /// it were evenly spread. No value without latencies.
    [[nodiscard]] std::optional<double> quantile(double part) const;

  private:
    static constexpr unsigned bits = 7, most_bits = 40;
    static constexpr std::size_t ranges = static_cast<std::size_t>(most_bits - bits + 1) << bits;
    [[nodiscard]] static std::size_t range_of(std::uint64_t nanoseconds);
    [[nodiscard]] static double low_end(std::size_t range);

    std::array<std::uint64_t, ranges> counts_{};
    std::uint64_t total_ = 0;
};
static_assert(std::is_trivially_copyable_v<LatencyCounts>);

/// Requests and responses of fixed sizes over one connection, one request at a time: what a server does,
/// where transmit() and receive() do what a file transfer does. Sizes are 1 B to 64 MiB.
struct Exchange {
    std::size_t request_bytes = 1;
    std::size_t response_bytes = 1;
    double seconds = 2;        ///< the asking end begins no request after this
    double stall_seconds = 10; ///< without an answer; then the peer is given up
    /// Ends a wait that takes so long. Without, who started the process does that: a socket with a time limit
    /// starts a timer at each wait, which takes a fiftieth of the rate of requests of 1 B.
    bool has_timer = true;
    std::function<void()> wait{}; ///< as that of a Load
};

/// Both work on a connected, blocking TCP socket, which stays open, and count as `bytes` those of whole
/// exchanges in both directions, and as `calls` the exchanges.

/// Asks until the time is over, then shuts its side. `latencies` counts from before a request is sent until
/// its response is complete.
[[nodiscard]] StreamUse ask(int socket, const Exchange& exchange, Meter& meter, LatencyCounts& latencies);
/// Answers until the peer shuts its side between two requests.
[[nodiscard]] StreamUse answer(int socket, const Exchange& exchange, Meter& meter);

} // namespace affinityd::ttcp

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/latency_counts.hpp"
#include "affinity-ttcp/engine/stream.hpp"

#include <cstddef>
#include <functional>

namespace affinityd::ttcp {

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

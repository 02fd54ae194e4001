// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/session.hpp"

#include <functional>

namespace affinityd::ttcp {

/// A sink for other machines, as this user or, for root, as the user nobody: no peer can do more than send.
struct Sink {
    Session session;               ///< of each connection
    unsigned most_peers = 16;      ///< at once; more wait until one has ended
    double idle_exit_seconds = 30; ///< ends after so long without a peer; 0: never
    /// Called in a process of its own for each connection.
    std::function<void(const measure::Report& report)> show;
};

/// The bytes that a peer must send within `stall_seconds`; one that sends less would hold its place for ever.
constexpr std::uint64_t least_of_a_peer = 64U << 10;

/// Receives what comes to a listening socket, until no peer has come for the sink's time: 0. 1: not possible.
[[nodiscard]] int serve(const host::Root& root, const Sink& sink, int listener);

} // namespace affinityd::ttcp

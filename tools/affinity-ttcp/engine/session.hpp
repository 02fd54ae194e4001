// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/socket.hpp"
#include "affinity-ttcp/engine/stream.hpp"
#include "measure/result.hpp"

#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::ttcp {

/// One ttcp run. Each end of each stream is a process of its own.
struct Session {
    Load load;
    SocketOptions socket;
    unsigned streams = 1;                ///< 1 to 1024
    std::vector<unsigned> transmit_cpus; ///< streams take them in turn; empty: not pinned
    std::vector<unsigned> receive_cpus;
    double connect_seconds = 10; ///< for each connection
};

/// Both ends on this machine over the loopback interface: compares schedulers and placements of the ends, and
/// touches no NIC.
[[nodiscard]] measure::Report run_loopback(const host::Root& root, const Session& session);
/// Transmits to any sink of plain TCP streams (ttcp -r, nc -l, this program).
[[nodiscard]] measure::Report run_transmit(const host::Root& root, const Session& session,
                                           const Address& target);
/// Accepts `session.streams` connections, waiting for them without limit, and receives.
[[nodiscard]] measure::Report run_receive(const host::Root& root, const Session& session, int listener);
/// Receives one stream over a connection that exists already (a service manager's Accept=yes).
[[nodiscard]] measure::Report run_connected(const host::Root& root, const Session& session, int socket);

} // namespace affinityd::ttcp

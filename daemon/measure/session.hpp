// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/result.hpp"
#include "measure/socket.hpp"
#include "measure/ttcp.hpp"

#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::measure {

/// One ttcp run: so many streams, each end of each in a process of its own.
struct Session {
    Load load;
    SocketOptions socket;
    unsigned streams = 1;                ///< 1 to 1024
    std::vector<unsigned> transmit_cpus; ///< dealt out to the streams in turn; empty: not pinned
    std::vector<unsigned> receive_cpus;
    double connect_seconds = 10; ///< for each connection
};

/// Both ends on this machine over the loopback interface: compares schedulers and placements of the ends, and
/// touches no NIC.
[[nodiscard]] Report run_loopback(const host::Root& root, const Session& session);
/// Transmits to any sink of plain TCP streams (ttcp -r, nc -l, this program).
[[nodiscard]] Report run_transmit(const host::Root& root, const Session& session, const Address& target);
/// Takes `session.streams` connections from a listener, waits for them without limit, and receives.
[[nodiscard]] Report run_receive(const host::Root& root, const Session& session, int listener);
/// Receives over a connection that was made already (a service manager's Accept=yes): one stream.
[[nodiscard]] Report run_connected(const host::Root& root, const Session& session, int socket);

/// What an errno value, or the way a stream ended, comes to.
[[nodiscard]] Outcome outcome_of(int code);
[[nodiscard]] Outcome outcome_of(End end);

/// The figures of ended streams put together; pure. `hz` is the CPU frequency if known.
struct Ends {
    std::vector<StreamUse> transmitted, received;
};
void fill(Report& report, const Ends& ends, std::optional<double> hz);

} // namespace affinityd::measure

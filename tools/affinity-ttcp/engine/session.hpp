// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/socket.hpp"
#include "affinity-ttcp/engine/stream.hpp"
#include "measure/result.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::ttcp {

/// A ttcp run. Each end of each stream is a process of its own.
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

/// The ends of all streams of a run.
struct Ends {
    std::vector<StreamUse> transmitted, received;
};

/// Adds up the figures of streams that have ended; pure. `hz` is the CPU frequency if known.
void fill(measure::Report& report, const Ends& ends, std::optional<double> hz);

/// For a person, where neither counters nor a frequency give a cost.
inline constexpr const char* no_cost = "not known: no hardware counters, and the CPU frequency is unknown";

/// The outcome that an errno value means for a whole run.
[[nodiscard]] measure::Outcome outcome_of(int code);

/// For a person: how far a stream came and why it ended. `use.end` is not done.
[[nodiscard]] std::string broken_stream(const StreamUse& use);

/// Records a fault. Only the first one counts: later ones mostly follow from it.
void note(measure::Report& report, measure::Outcome outcome, const std::string& reason);

} // namespace affinityd::ttcp

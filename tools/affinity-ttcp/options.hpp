// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/session.hpp"

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include <sys/types.h>

namespace affinityd::ttcp {

/// The bytes that a peer of a sink must send within `stall_seconds`; one that sends less would hold its place
/// for ever.
constexpr std::uint64_t least_of_a_peer = 64U << 10;

enum class Mode { transmit, receive, loopback, sink };

/// The command line, checked.
struct Options {
    Mode mode = Mode::transmit;
    Session session;
    Address peer; ///< transmit: where to; receive and sink: where to listen, for a sink "*": everywhere
    bool pattern = false; ///< -s: a pattern out, received bytes dropped; else standard input and output
    bool json = false;
    char unit = 'K';               ///< -f: k K m M g G, lower case bits, upper case bytes
    unsigned busy_above = 0;       ///< percent: on a busier machine or NIC the run is skipped; 0: never
    unsigned most_peers = 16;      ///< sink: at once
    double idle_exit_seconds = 30; ///< sink: ends after so long without a peer
    pid_t child_of = 0;            ///< the daemon that has started it (measure/program.hpp); 0: none
};

/// The options in `words`, the program's name first; or the code to exit with at once (after --help, or the
/// words are wrong).
[[nodiscard]] std::expected<Options, int> parse_options(const std::vector<std::string>& words);

} // namespace affinityd::ttcp

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/session.hpp"

#include <expected>
#include <string>

namespace affinityd::ttcp {

enum class Mode { transmit, receive, loopback, sink };

/// The command line, checked.
struct Options {
    Mode mode = Mode::transmit;
    Session session;
    Address peer;         ///< transmit: where to; receive: where to listen
    bool pattern = false; ///< -s: a pattern out, received bytes dropped; else standard input and output
    bool json = false;
    char unit = 'K';               ///< -f: k K m M g G, lower case bits, upper case bytes
    unsigned busy_above = 0;       ///< percent: on a busier machine or NIC the run is skipped; 0: never
    double idle_exit_seconds = 30; ///< sink: ends after so long without a peer
};

/// The options, or the code to exit with at once (after --help, or the command line is wrong).
[[nodiscard]] std::expected<Options, int> parse_options(int argc, char** argv);

} // namespace affinityd::ttcp

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/session.hpp"

#include <expected>
#include <string>

namespace affinity_ttcp {

enum class Mode { transmit, receive, loopback, sink };

/// The command line, checked.
struct Options {
    Mode mode = Mode::transmit;
    affinityd::measure::Session session;
    affinityd::measure::Address peer; ///< transmit: where to; receive: where to listen
    bool pattern = false; ///< -s: a pattern out, received bytes dropped; else standard input and output
    bool json = false;
    char unit = 'K';         ///< -f: k K m M g G, lower case bits, upper case bytes
    unsigned busy_above = 0; ///< percent: on a busier machine or NIC the run is skipped; 0: it is not asked
    double idle_exit_seconds = 30; ///< sink: ends when nobody came for so long
};

/// The options, or the exit code with which to end at once (help was asked for, or the command line is
/// wrong).
[[nodiscard]] std::expected<Options, int> parse_options(int argc, char** argv);

} // namespace affinity_ttcp

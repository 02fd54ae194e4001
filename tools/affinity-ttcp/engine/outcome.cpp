// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/outcome.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace affinityd::ttcp {

using measure::Outcome;

Outcome outcome_of(int code) {
    switch (code) {
    case ETIMEDOUT:
    case EAGAIN:
        return Outcome::timed_out;
    case ECANCELED:
        return Outcome::killed;
    case ECONNREFUSED:
    case EADDRNOTAVAIL:
    case EHOSTUNREACH:
        return Outcome::unreachable;
    case ENETUNREACH:
    case ENETDOWN:
        return Outcome::link_lost;
    default:
        return Outcome::failed;
    }
}

Outcome outcome_of(End end) {
    switch (end) {
    case End::whole:
        return Outcome::done;
    case End::peer:
        return Outcome::peer_gone;
    case End::stalled:
        return Outcome::timed_out;
    case End::network:
        return Outcome::link_lost;
    case End::local:
        return Outcome::failed;
    }
    return Outcome::failed;
}

std::string broken_stream(const StreamUse& use) {
    return fmt::format("a stream ended after {} bytes: {}", use.bytes, std::strerror(use.code));
}

void note(measure::Report& report, Outcome outcome, const std::string& reason) {
    if (report.outcome != Outcome::done) return;
    report.outcome = outcome;
    report.reason = reason;
}

} // namespace affinityd::ttcp

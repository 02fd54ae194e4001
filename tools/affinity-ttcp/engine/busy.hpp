// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/address.hpp"

#include <optional>
#include <string>

namespace affinityd::host {
class Root;
}

namespace affinityd::ttcp {

/// How busy the machine is before a measurement adds to it.
struct Busyness {
    std::optional<double> cpus; ///< part of all CPU time, 0 to 1; no value: unknown
    std::string nic;            ///< the interface that leads to the peer, "" for loopback or if unknown
    std::optional<double>
        link; ///< the busier direction's part of its speed; no value: no interface, or it reports no speed
};

/// Observes for that many seconds. `peer` is the far end of the measurement; no value: this machine.
[[nodiscard]] Busyness look_around(const host::Root& root, const std::optional<Address>& peer,
                                   double seconds);

/// Why a measurement should not begin now, "" if it may. `bound`: 0 to 1.
[[nodiscard]] std::string why_busy(const Busyness& busyness, double bound);

} // namespace affinityd::ttcp

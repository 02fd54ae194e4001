// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/socket.hpp"

#include <optional>
#include <string>

namespace affinityd::host {
class Root;
}

namespace affinityd::measure {

/// How much the machine has to do already, before a measurement adds to it.
struct Busyness {
    std::optional<double> cpus; ///< part of all CPU time, 0 to 1; nothing: cannot be told
    std::string nic;            ///< the interface that leads to the peer, "" for loopback or if unknown
    std::optional<double>
        link; ///< the busier direction's part of its speed; nothing: no interface, or it tells no speed
};

/// Looks for so long. `peer`: whom the measurement is to talk to; nothing: itself.
[[nodiscard]] Busyness look_around(const host::Root& root, const std::optional<Address>& peer,
                                   double seconds);

/// Why a measurement should not begin now, "" if it may. `bound`: 0 to 1.
[[nodiscard]] std::string why_busy(const Busyness& busyness, double bound);

} // namespace affinityd::measure

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/turn.hpp"
#include "inventory/pid_stream.hpp"

#include <cstdint>
#include <optional>

namespace affinityd::app {

/// How far a full pass has come.
struct Reconcile {
    inventory::PidStream pids;  ///< those still to be looked at
    std::uint64_t number = 0;   ///< of this pass; processes it saw carry it
    std::optional<Turn> turn{}; ///< of the process that is looked at now
};

} // namespace affinityd::app

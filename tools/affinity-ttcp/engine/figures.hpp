// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/stream.hpp"
#include "measure/result.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::ttcp {

/// What the streams of a run did.
struct Ends {
    std::vector<StreamUse> transmitted, received;
};

/// Adds up the figures of streams that have ended; pure. `hz` is the CPU frequency if known.
void fill(measure::Report& report, const Ends& ends, std::optional<double> hz);

/// For a person, where neither counters nor a frequency give a cost.
inline constexpr const char* no_cost = "not known: no hardware counters, and the CPU frequency is unknown";

} // namespace affinityd::ttcp

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/activity.hpp"
#include "affinity-ttcp/engine/figures.hpp"
#include "affinity-ttcp/models/round.hpp"

#include <cstdint>
#include <expected>
#include <optional>

namespace affinityd::ttcp {

/// What was observed around the streams of one round.
struct RoundCosts {
    Activity first, last;                        ///< of the machine, before and after
    double threads_seconds = 0;                  ///< CPU time of the NAPI threads under test
    std::optional<std::uint64_t> threads_cycles; ///< no value: no hardware counters
    std::optional<double> hz;                    ///< CPU frequency, if known
};

/// The figures of one round with their cost; pure. A fault if no bytes were moved.
[[nodiscard]] std::expected<Round, RoundFault> make_round(const Testbed& testbed, bool receives,
                                                          const Ends& ends, const RoundCosts& costs);

} // namespace affinityd::ttcp

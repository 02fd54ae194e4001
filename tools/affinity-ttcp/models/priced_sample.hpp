// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/figures.hpp"
#include "affinity-ttcp/engine/latency_counts.hpp"
#include "affinity-ttcp/models/cost.hpp"
#include "affinity-ttcp/models/round.hpp"

#include <expected>

namespace affinityd::ttcp {

/// What the ends of one round did; the receivers answer with Work::answer.
struct RoundEnds {
    Ends ends;
    LatencyCounts latencies; ///< empty but with Work::answer
};

/// The figures of one round with their cost; pure. A fault if no bytes were moved.
[[nodiscard]] std::expected<Round, RoundFault> make_round(const Testbed& testbed, Work work,
                                                          const RoundEnds& ends, const RoundCosts& costs);

} // namespace affinityd::ttcp

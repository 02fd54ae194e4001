// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/activity.hpp"
#include "affinity-ttcp/testbed/testbed.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::measure {
struct EndReport;
}

namespace affinityd::ttcp {

/// A cost in its parts, in whatever unit.
struct CostParts {
    double processes = 0; ///< of the processes under test, in user and kernel mode
    double softirq = 0;   ///< packets that are taken in
    std::optional<double>
        interrupts; ///< handlers; no value: not told apart from the others, or there are none
    [[nodiscard]] double total() const { return processes + softirq + interrupts.value_or(0); }
    [[nodiscard]] CostParts times(double factor) const;
};

/// What was observed around the streams of one round.
struct RoundCosts {
    Activity first, last;                        ///< of the machine, before and after
    double threads_seconds = 0;                  ///< CPU time of the NAPI threads under test
    std::optional<std::uint64_t> threads_cycles; ///< no value: no hardware counters
    std::optional<double> hz;                    ///< CPU frequency, if known
};

/// What one round cost the system under test; pure.
struct Cost {
    CostParts cpu_seconds;
    std::optional<CostParts> cycles; ///< no value: neither counters nor a frequency
    std::string cycles_source;       ///< for a person
    std::string parts_note;          ///< for a person: what the parts hold, and what is not told apart
};

/// `end` is the system under test. Softirqs are its NAPI threads where it has them; else, with interrupts,
/// those of the whole machine: the kernel does not account for them by NIC.
[[nodiscard]] Cost cost_of(const Testbed& testbed, const measure::EndReport& end, const RoundCosts& costs);

} // namespace affinityd::ttcp

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/activity.hpp"
#include "affinity-ttcp/models/model.hpp"
#include "affinity-ttcp/testbed/testbed.hpp"
#include "measure/result.hpp"

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

/// Observations around the streams of one round.
struct RoundCosts {
    Activity first, last;                        ///< of the machine, before and after
    double threads_seconds = 0;                  ///< CPU time of the NAPI threads under test
    std::optional<std::uint64_t> threads_cycles; ///< no value: no hardware counters
    std::optional<double> hz;                    ///< CPU frequency, if known
};

/// The cost of one round to the system under test; pure.
struct Cost {
    CostParts cpu_seconds;
    std::optional<CostParts> cycles; ///< no value: neither counters nor a frequency
    std::string cycles_source;       ///< for a person
    std::string parts_note;          ///< for a person: what the parts hold, and what is not told apart
};

/// `end` is the system under test. Softirqs are its NAPI threads where it has them; else, with interrupts,
/// those of the whole machine: the kernel does not account for them by NIC.
[[nodiscard]] Cost cost_of(const Testbed& testbed, const measure::EndReport& end, const RoundCosts& costs);

/// Hardware counters of the processes under test; no value: this machine has none.
struct HardwareCounts {
    std::optional<std::uint64_t> instructions, cache_misses; ///< of the last level
};

/// Counts of the processes under test.
struct ProcessCounts {
    std::uint64_t switches = 0;
    std::optional<std::uint64_t> migrations, retransmits;
};

/// Figures of the peers that ask.
struct ExchangeSample {
    std::uint64_t count = 0;
    double p50_seconds = 0, p99_seconds = 0; ///< from before a request is sent until its response is complete
};

/// A model in a round.
struct ModelSample {
    double bits_per_second = 0;
    std::uint64_t bytes = 0; ///< that arrived; with Work::answer at either end
    double wall_seconds = 0;
    CostParts cpu_seconds;                   ///< of the system under test
    std::optional<CostParts> cycles_per_bit; ///< GHz/Gbps
    HardwareCounts hardware;
    ProcessCounts processes;
    KernelCounts kernel;
    std::optional<ExchangeSample> exchanges; ///< with Work::answer
    std::vector<measure::CpuReport> cpus;
    std::vector<measure::LineReport> lines; ///< interrupts of the NICs under test
};

struct ModelResult {
    Model model = Model::none;
    std::vector<ModelSample> samples;
};

/// A point of the curves, each model at it.
struct PointResult {
    LoadPoint point;
    std::vector<ModelResult> models;
};

} // namespace affinityd::ttcp

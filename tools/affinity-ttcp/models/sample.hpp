// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/kernel_counts.hpp"
#include "affinity-ttcp/models/cost.hpp"
#include "affinity-ttcp/models/load_point.hpp"
#include "affinity-ttcp/models/model.hpp"
#include "measure/result.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace affinityd::ttcp {

/// Hardware counters of the processes under test; no value: this machine has none.
struct HardwareCounts {
    std::optional<std::uint64_t> instructions, cache_misses; ///< of the last level
};

/// Of the processes under test.
struct ProcessCounts {
    std::uint64_t switches = 0;
    std::optional<std::uint64_t> migrations, retransmits;
};

/// What the peers that ask saw.
struct ExchangeSample {
    std::uint64_t count = 0;
    double p50_seconds = 0, p99_seconds = 0; ///< from before a request is sent until its response is complete
};

/// One model in one round.
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

/// One point of the curves, each model at it.
struct PointResult {
    LoadPoint point;
    std::vector<ModelResult> models;
};

} // namespace affinityd::ttcp

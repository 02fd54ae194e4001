// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/models/model.hpp"
#include "measure/result.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace affinityd::ttcp {

/// One model in one round.
struct ModelSample {
    double bits_per_second = 0;
    std::uint64_t bytes = 0; ///< that arrived
    double cpu_seconds = 0;  ///< of the system under test: its processes and its interrupt work
    double wall_seconds = 0;
    std::optional<double> cycles_per_bit; ///< GHz/Gbps
    std::optional<std::uint64_t> instructions,
        cache_misses; ///< of its processes; no value: no hardware counters
    std::uint64_t switches = 0;
    std::optional<std::uint64_t> migrations;
    std::optional<std::uint64_t> retransmits;
    std::vector<measure::CpuReport> cpus;
    std::vector<measure::LineReport> lines; ///< interrupts of the NICs under test
};

struct ModelResult {
    Model model = Model::none;
    std::vector<ModelSample> samples;
};

} // namespace affinityd::ttcp

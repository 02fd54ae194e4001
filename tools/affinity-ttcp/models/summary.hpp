// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/models/sample.hpp"
#include "measure/comparison.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::ttcp {

struct PerSecond {
    double switches = 0;
    std::optional<double> migrations, retransmits; ///< no value: a round did not count them
};

/// What the rounds show about one model.
struct ModelSummary {
    Model model = Model::none;
    unsigned rounds = 0;
    std::optional<measure::Interval> bits_per_second; ///< harmonic mean
    std::optional<measure::Interval> cycles_per_bit;
    std::optional<double> instructions_per_bit, cache_misses_per_bit; ///< over all rounds
    double busy_cpus = 0;     ///< CPU time of the system under test over wall time
    measure::Comparison gain; ///< of throughput against the first model; not_enough for the first itself
    measure::Comparison cost; ///< of cycles per bit against the first model: `less` is better
    PerSecond per_second;
    std::vector<measure::CpuReport> cpus; ///< sums over the rounds
    std::vector<measure::LineReport> lines;
};

/// Against the first of `results`. The intervals of all gains and costs hold together in 95 of 100
/// experiments.
[[nodiscard]] std::vector<ModelSummary> summarize(const std::vector<ModelResult>& results);

/// "+29.1 % (27.0 to 31.2)", "no difference shown (-2.0 to +3.1)", "too few samples".
[[nodiscard]] std::string describe(const measure::Comparison& comparison);

} // namespace affinityd::ttcp

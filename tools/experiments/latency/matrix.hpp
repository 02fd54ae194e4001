// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "experiments/latency/ping_pong.hpp"
#include "topology/latencies.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::experiments {

/// One pair: ns for one way. The harmonic mean of the rates, as of equal amounts of work, is what the matrix
/// has; it holds with its interval in 95 of 100 such measurements.
struct PairFigures {
    CpuPair pair;
    double ns = 0;
    std::optional<double> low, high; ///< no value: there are fewer than four samples
    double median = 0;
};

/// What was measured on a machine.
struct LatencyMatrix {
    topology::Latencies latencies;
    std::vector<PairFigures> pairs; ///< by pair
    PingPong how;
    std::size_t interrupted = 0;      ///< samples taken again
    std::vector<CpuPair> disturbed{}; ///< pairs without a sample in which both threads stayed on their CPUs
    bool is_whole = true;             ///< all pairs were measured before somebody stopped it
};

/// Measures `pairs`, one after the other, of CPUs in `cpus`. `machine` is what is kept with the figures. An
/// Error: a thread cannot be made or pinned; what was measured until then is lost.
[[nodiscard]] Result<LatencyMatrix> measure_pairs(const CpuSet& cpus, topology::MeasuredMachine machine,
                                                  const std::vector<CpuPair>& pairs, const PingPong& how,
                                                  Run& run);

/// About how long that takes, from experience.
[[nodiscard]] double estimated_seconds(std::size_t pairs, const PingPong& how);

/// Everything as one JSON object, which topology::latencies_from_json can read, too: with "low", "high" and
/// "median" as triangles like "ns", "means", "samples", "round_trips".
[[nodiscard]] std::string to_json(const LatencyMatrix& matrix);

} // namespace affinityd::experiments

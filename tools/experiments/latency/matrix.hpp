// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "experiments/frame/nearness.hpp"
#include "topology/latencies.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::experiments {

class Run;

/// How two threads pass the cache line to each other.
enum class Means {
    cas,   ///< by compare-and-swap, also while they wait: the line is always asked for to be written
    store, ///< by a store, and while they wait by loads
};
[[nodiscard]] std::string_view name_of(Means means); ///< "cas", "store"

/// How a pair is measured. Defaults: of the document (JabPerf, "CPU Affinity: Because Even A Single Chip Is
/// Nonuniform") the samples, of core-to-core-latency the way.
struct PingPong {
    Means means = Means::cas;
    unsigned samples = 30;
    unsigned round_trips = 300; ///< in each sample
};

/// Figures of one pair: ns for one way, half a round trip, one for each sample, in the order they were taken.
struct PairSamples {
    std::vector<double> ns;      ///< fewer than asked for if it was stopped, or interrupted all the time
    std::size_t interrupted = 0; ///< samples taken again, because one of the threads had been off its CPU
};

/// One cache line goes to and fro between two threads that are pinned to the CPUs of the pair, after a
/// millisecond in which clocks rise. A sample during which the scheduler took one of the threads off its CPU
/// says nothing of the machine, and is taken again, until four times as many were and half a second is over.
/// An Error: a thread cannot be made or pinned.
[[nodiscard]] Result<PairSamples> bounce(const CpuPair& pair, const PingPong& how, const Run& run);

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

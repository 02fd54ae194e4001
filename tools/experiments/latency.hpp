// SPDX-License-Identifier: Apache-2.0
// How long a message takes between each two CPUs, and which are near each other. Source: JabPerf, "CPU
// Affinity: Because Even A Single Chip Is Nonuniform".
#pragma once

#include "experiments/frame.hpp"
#include "experiments/nearness.hpp"
#include "topology/latencies.hpp"

#include <expected>

namespace affinityd::experiments {

/// Which pairs of CPUs are measured.
enum class PairChoice {
    automatic, ///< all while they are few, else some for each two groups
    core,      ///< one CPU of each core with one of each other core
    llc,       ///< one CPU of each LLC group with one of each other
    all,
};
/// Up to so many CPUs, `automatic` is `all`.
inline constexpr std::size_t few_cpus = 64;

/// In an order without pattern, so that what disturbs for a while does not hit neighbours only; the same
/// choice of the same machine has the same order. With `automatic` on a large machine: hardware threads of
/// each core; within an LLC group one CPU of each core with each other core while these are few, else a part
/// of them; and between two LLC groups a few. The map estimates those left out.
[[nodiscard]] std::expected<std::vector<CpuPair>, Refusal>
choose_pairs(const topology::Topology& topology, const CpuSet& cpus, PairChoice choice);

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

/// A cache line goes to and fro between two threads that are pinned to the CPUs of the pair, after a
/// millisecond in which clocks rise. A sample during which the scheduler took one of the threads off its CPU
/// says nothing of the machine, and is taken again, until four times as many were and half a second is over.
/// An Error: a thread cannot be made or pinned.
[[nodiscard]] Result<PairSamples> bounce(const CpuPair& pair, const PingPong& how, const Run& run);

/// A pair: ns for one way. The harmonic mean of the rates, as of equal amounts of work, is what the matrix
/// has; it holds with its interval in 95 of 100 such measurements.
struct PairFigures {
    CpuPair pair;
    double ns = 0;
    std::optional<double> low, high; ///< no value: there are fewer than four samples
    double median = 0;
};

/// The figures of a machine.
struct LatencyMatrix {
    topology::Latencies latencies;
    std::vector<PairFigures> pairs; ///< by pair
    PingPong how;
    std::size_t interrupted = 0;      ///< samples taken again
    std::vector<CpuPair> disturbed{}; ///< pairs without a sample in which both threads stayed on their CPUs
    bool is_whole = true;             ///< all pairs were measured before it was stopped
};

/// Measures `pairs`, one after the other, of CPUs in `cpus`. `machine` is what is kept with the figures. An
/// Error: a thread cannot be made or pinned; what was measured until then is lost.
[[nodiscard]] Result<LatencyMatrix> measure_pairs(const CpuSet& cpus, topology::MeasuredMachine machine,
                                                  const std::vector<CpuPair>& pairs, const PingPong& how,
                                                  Run& run);

/// About how long that takes, from experience.
[[nodiscard]] double estimated_seconds(std::size_t pairs, const PingPong& how);

/// All pairs of one kind that were measured: "same LLC", "across sockets". ns for one way.
struct Distance {
    std::string name{};
    std::size_t pairs = 0;
    double median = 0, least = 0, most = 0;
    double spread = 0; ///< median of how far the pairs are from the median
};

/// The topology's name of these CPUs, among those that were measured: "core 3", "llc 0 = node 0 = socket 0",
/// "llc 0-1", "part of llc 2"; "" if it has no words for them. Numbers are those of CPU-set expressions.
[[nodiscard]] std::string name_of_group(const topology::Topology& topology, const CpuSet& group,
                                        const CpuSet& measured);

/// The topology's name for the groups of a level, all of them together: "cores", "LLC groups", "nodes",
/// "sockets"; "" if they are nothing that it knows.
[[nodiscard]] std::string name_of_level(const topology::Topology& topology,
                                        const topology::LatencyLevel& level, const CpuSet& measured);

/// The result of latencies, measured here or read from a table.
struct LatencyReading : Reading {
    std::vector<topology::LatencyLevel> levels{}; ///< fine to coarse
    std::vector<std::string> level_names{};       ///< of each; "" where the topology has no word for it
    std::vector<Distance> distances{};            ///< near to far
    bool is_uniform = false;      ///< no pair is clearly nearer than most, so no groups either
    std::size_t not_measured = 0; ///< pairs
};

/// Pure. `topology` may be null: of a foreign table nothing else is known.
[[nodiscard]] LatencyReading read_latencies(const topology::Latencies& latencies,
                                            const topology::Topology* topology);

} // namespace affinityd::experiments

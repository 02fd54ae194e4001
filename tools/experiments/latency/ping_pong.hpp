// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "experiments/frame/nearness.hpp"

#include <cstddef>
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

/// What one pair gave: ns for one way, half a round trip, one for each sample, in the order they were taken.
struct PairSamples {
    std::vector<double> ns;      ///< fewer than asked for if it was stopped, or interrupted all the time
    std::size_t interrupted = 0; ///< samples taken again, because one of the threads had been off its CPU
};

/// One cache line goes to and fro between two threads that are pinned to the CPUs of the pair, after a
/// millisecond in which clocks rise. A sample during which the scheduler took one of the threads off its CPU
/// says nothing of the machine, and is taken again, until four times as many were and half a second is over.
/// An Error: a thread cannot be made or pinned.
[[nodiscard]] Result<PairSamples> bounce(const CpuPair& pair, const PingPong& how, const Run& run);

} // namespace affinityd::experiments

// SPDX-License-Identifier: Apache-2.0
// Threads that write to the same cache lines: left to the scheduler, pinned, pinned badly. Source: "Pin
// threads at the source code level" (Arm Learning Paths), whose two programs are the first two placings.
#pragma once

#include "experiments/frame.hpp"
#include "experiments/nearness.hpp"

#include <array>
#include <expected>

namespace affinityd::experiments {

/// Where the four threads of the program are that writes to two cache lines, two threads to each.
enum class Placing {
    scheduler,  ///< wherever the scheduler puts them
    pairs,      ///< the two of each line on one CPU, each line on a CPU of its own
    neighbours, ///< each thread on a CPU of its own, the two of a line as near to each other as can be
    apart,      ///< the two of each line as far from each other as can be
    one_line,   ///< as `pairs`, but what the pairs write lies in one line: false sharing
};
[[nodiscard]] std::string_view name_of(Placing placing); ///< "pinned pairs", for people
[[nodiscard]] std::string_view key_of(Placing placing);  ///< "pairs", for JSON

inline constexpr std::size_t sharing_threads = 4;

/// Thread i writes to variable i % 2, as in the document.
struct PlacedThreads {
    Placing placing = Placing::scheduler;
    std::array<CpuSet, sharing_threads> cpus;
    std::optional<Near> near{}; ///< how near the two of a line are; no value: on one CPU, or anywhere
    /// The CPUs of the threads that write to variable 0 or 1.
    [[nodiscard]] CpuSet cpus_of(std::size_t variable) const { return cpus[variable] | cpus[variable + 2]; }
};

/// All that can be compared on this machine with these CPUs, in the order above; `neighbours` needs four
/// CPUs.
[[nodiscard]] std::expected<std::vector<PlacedThreads>, Refusal>
placed_threads(const topology::Topology& topology, const CpuSet& cpus);

/// Reads of the first-level data cache in user mode, and those that missed it.
struct CacheReads {
    std::uint64_t reads = 0, misses = 0;
};

struct SharingHow {
    unsigned rounds = 40;           ///< in each, every placing has one run
    unsigned additions = 1U << 18U; ///< of each thread to its variable in a run; the document's number
};

struct SharingCase : Case {
    PlacedThreads placed;
    std::optional<CacheReads> reads{}; ///< of all four threads in further runs; no value: no counters
    /// Part of the reads that missed; no value: not counted.
    [[nodiscard]] std::optional<double> miss_rate() const {
        if (!reads || reads->reads == 0) return std::nullopt;
        return static_cast<double>(reads->misses) / static_cast<double>(reads->reads);
    }
};

struct SharingResult : Reading {
    std::vector<SharingCase> cases; ///< the first is `scheduler`, with which the others are compared
    SharingHow how;
    std::string no_counters; ///< why misses are not counted; "" where they are
};

/// Runs all placings by turns. In a run, four threads add 1.0 to their variable, not as one operation but by
/// a load and a store, as the document's `val = val + 1.0f` of an atomic float does; its time is from before
/// they are made until all have ended. Afterwards the same again with counters. An Error: a thread cannot be
/// made or may not run there.
[[nodiscard]] Result<SharingResult> measure_sharing(const std::vector<PlacedThreads>& placings,
                                                    const SharingHow& how, Run& run);
/// About how long that takes, from experience.
[[nodiscard]] double estimated_seconds(std::size_t placings, const SharingHow& how);

/// Compares the cases, and says what they mean. Pure.
void read_sharing(SharingResult& result);

} // namespace affinityd::experiments

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "experiments/frame/nearness.hpp"
#include "experiments/frame/refusal.hpp"
#include "topology/topology.hpp"

#include <array>
#include <expected>
#include <optional>
#include <string_view>
#include <vector>

namespace affinityd::experiments {

/// Where the four threads of the program are that writes to two cache lines, two threads to each. Source:
/// "Pin threads at the source code level" (Arm Learning Paths), whose two programs are the first two.
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

} // namespace affinityd::experiments

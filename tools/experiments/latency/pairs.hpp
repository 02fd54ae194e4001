// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/frame/nearness.hpp"
#include "experiments/frame/refusal.hpp"

#include <expected>
#include <string_view>
#include <vector>

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

} // namespace affinityd::experiments

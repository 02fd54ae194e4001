// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "experiments/cache/places.hpp"
#include "experiments/frame/refusal.hpp"
#include "topology/topology.hpp"

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::experiments {

/// What a task finds of its data when it goes on after an interruption: where it ran before, and who ran
/// meanwhile. Source: Kazempour, Fedorova, Alagheband, "Performance Implications of Cache Affinity on
/// Multicore Processors": `kept` is high affinity (its BV_0), `displaced` low L1 affinity on the same CPU
/// (BV_L1), `emptied` that with low retention of the outer cache, too (BV_L2); `group` another CPU of the
/// same LLC, the others low affinity.
enum class Place {
    kept,       ///< on the same CPU, after somebody who needs no cache
    displaced,  ///< on the same CPU, after somebody who fills the caches of the core
    emptied,    ///< on the same CPU, after somebody who fills all caches
    group,      ///< it was on another core of the same LLC
    other_llc,  ///< it was in another LLC of the same node
    other_node, ///< it was on another node or socket
};
inline constexpr std::array places{Place::kept,  Place::displaced, Place::emptied,
                                   Place::group, Place::other_llc, Place::other_node};
[[nodiscard]] std::string_view name_of(Place place); ///< "same LLC", for people
[[nodiscard]] std::string_view key_of(Place place);  ///< "group", for JSON
[[nodiscard]] inline bool is_move(Place place) { return place >= Place::group; }

/// Bytes of the caches that a CPU reads through.
struct CacheSizes {
    std::uint64_t first = 0; ///< L1 data
    std::uint64_t own = 0;   ///< the largest that only its core has
    std::uint64_t last = 0;  ///< the last level
};

/// Which CPU each place is; what the machine cannot do has none, and a sentence why.
struct CacheSeats {
    unsigned home = 0;
    std::optional<unsigned> group, other_llc, other_node;
    CacheSizes sizes;                   ///< of `home`
    bool are_sizes_recorded = true;     ///< by the kernel; else they are those the caller brought
    std::vector<std::string> refused{}; ///< sentences
    /// No value: the machine cannot do it.
    [[nodiscard]] std::optional<unsigned> of(Place place) const;
};

/// Chooses from `cpus` a CPU from which as many places as possible can be reached. `otherwise`: the sizes to
/// go by where the topology records none. A Refusal: no CPU, or the sizes are not known either way.
[[nodiscard]] std::expected<CacheSeats, Refusal>
cache_seats(const topology::Topology& topology, const CpuSet& cpus, const CacheSizes& otherwise = {});

/// The working sets to be tried, ascending: half the L1, the L1, half the core's own cache, that cache, one
/// in between it and the last level, half the last level, the last level, twice that. At most most_footprint.
[[nodiscard]] std::vector<std::uint64_t> footprints_for(const CacheSizes& sizes);
inline constexpr std::uint64_t most_footprint = 512U << 20U;

/// "24 KiB", "1.5 MiB", "1 GiB"
[[nodiscard]] std::string bytes_words(std::uint64_t bytes);

/// Sizes that the C library tells of the caches of this machine, for kernels that tell nothing (virtual
/// machines often hide what they read it from). Zero is what it does not tell either; otherwise the three
/// ascend. Its last level may be that of all cores of a socket together. Source: sysconf(3),
/// _SC_LEVEL1_DCACHE_SIZE and those after it.
[[nodiscard]] CacheSizes sizes_of_c_library();

/// A remark that `sizes` come from there.
[[nodiscard]] std::string remark_of_c_library(const CacheSizes& sizes);

} // namespace affinityd::experiments

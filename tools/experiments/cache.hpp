// SPDX-License-Identifier: Apache-2.0
// The cost of a lost cache to a task, and how wide its mask may be. Source: Kazempour, Fedorova,
// Alagheband, "Performance Implications of Cache Affinity on Multicore Processors".
#pragma once

#include "experiments/frame.hpp"
#include "experiments/nearness.hpp"

#include <array>
#include <expected>

namespace affinityd::experiments {

/// The data that a task still finds in caches when it goes on after an interruption: `kept` is high affinity
/// (the document's BV_0), `displaced` low L1 affinity on the same CPU (BV_L1), `emptied` that with low
/// retention of the outer cache, too (BV_L2); `group` another CPU of the same LLC, the others low affinity.
enum class Place {
    kept,       ///< on the same CPU, after a program that needs no cache
    displaced,  ///< on the same CPU, after one that fills the caches of the core
    emptied,    ///< on the same CPU, after one that fills all caches
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
/// Sizes that the C library tells, for kernels that tell nothing (virtual machines often hide them); zero is
/// what it does not tell either. The last level may be that of all cores of a socket together. Source:
/// sysconf(3), _SC_LEVEL1_DCACHE_SIZE and those after it.
[[nodiscard]] CacheSizes sizes_of_c_library();
/// A remark that `sizes` come from there.
[[nodiscard]] std::string remark_of_c_library(const CacheSizes& sizes);

/// Which CPU each place is. A place that the machine does not have has none, and a sentence why.
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

/// The data that fills the caches, so that nothing of a working set is left there: how much memory it reads,
/// and why it is no more.
struct Polluter {
    std::uint64_t bytes = 0;
    std::uint64_t enough = 0;                    ///< that empties the last level
    std::optional<std::uint64_t> available = {}; ///< memory that could be had; no value: it is not known
};
inline constexpr std::uint64_t most_polluter = std::uint64_t{1} << 30U;
/// Eight times the last level where that much can be had: no more than half of the memory that is available,
/// and most_polluter, but so much in any case that it fills what the core has for itself.
[[nodiscard]] Polluter polluter_for(const CacheSizes& sizes, std::optional<std::uint64_t> available);
/// "the polluter reads 64 MiB, and ...": what a smaller one means for the figures; "" where it is enough.
[[nodiscard]] std::string remark_of(const Polluter& polluter);
/// Takes out of `footprints` the working sets for which the polluter leaves no room, so that the kernel ends
/// no program for lack of memory. A sentence that names those; "": there are none.
[[nodiscard]] std::string take_out_too_large(std::vector<std::uint64_t>& footprints,
                                             const Polluter& polluter);
/// Bytes that this program can take without pushing others out of memory: what the kernel takes for available
/// (MemAvailable), or less where a control group (version 2) of this program, or one above it, leaves less.
/// No value: the machine does not say. Sources: proc_meminfo(5), Documentation/admin-guide/cgroup-v2.rst.
[[nodiscard]] std::optional<std::uint64_t> available_memory(const host::Root& root);

struct CacheHow {
    std::vector<double> quanta_ms{2, 10, 200}; ///< the document's
    unsigned rounds = 8;                       ///< in each, every place has one quantum
    std::vector<std::uint64_t> footprints;     ///< bytes, ascending
    std::uint64_t polluter_bytes = 0;
};

/// A working set, a quantum, a place. `seconds` are the CPU time of work that takes about one quantum where
/// the cache is kept, after the interruption.
struct CacheCase : Case {
    std::uint64_t footprint = 0; ///< bytes
    double quantum_ms = 0;
    Place place = Place::kept;
    [[nodiscard]] bool is_costly() const; ///< it is shown to be longer by more than little_loss
};
/// A task that loses less does not need a narrower mask.
inline constexpr double little_loss = 0.01;

/// A place at a quantum, over the working sets that fit into the cache that is lost (the core's own for
/// `displaced` and `group`, the last level for others): the document's "11 % on average and 27 % maximum".
struct PlaceLoss {
    Place place = Place::kept;
    double quantum_ms = 0;
    measure::Comparison mean{};     ///< how much longer, on average over the working sets
    measure::Comparison most{};     ///< of the working set that loses most
    std::uint64_t at = 0;           ///< that one, bytes
    std::size_t costly = 0, of = 0; ///< of those working sets: shown to lose by themselves, and all
    /// Shown on average, or by two working sets: one of many may be chance.
    [[nodiscard]] bool is_shown() const;
};

struct CacheResult : Reading {
    std::vector<CacheCase> cases;    ///< by footprint, quantum, place; each is compared with `kept`
    std::vector<PlaceLoss> losses{}; ///< of all places but `kept`, by quantum, then place
    CacheHow how;
};

/// A thread that is pinned to `home` walks through its working set, is interrupted by one that fills caches
/// or not, and goes on at each place by turns. A quantum during which another program had the CPU is taken
/// again, once. An Error: no memory, or it cannot be pinned.
[[nodiscard]] Result<CacheResult> measure_cache(const CacheSeats& seats, const CacheHow& how, Run& run);
/// About how long that takes.
[[nodiscard]] double estimated_seconds(const CacheSeats& seats, const CacheHow& how);

/// Compares the cases; the verdict is the value of `bind` that this machine rewards, "not known" where no
/// move was shown to cost anything, there were too few rounds, or the machine was not `is_quiet`. Pure. All
/// comparisons, of all cases and all averages, hold together in 95 of 100 experiments.
void read_cache(CacheResult& result, const CacheSeats& seats, bool is_quiet = true);

} // namespace affinityd::experiments

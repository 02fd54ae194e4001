// SPDX-License-Identifier: Apache-2.0
#include "experiments/cache/places.hpp"

#include "experiments/frame/nearness.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::experiments {

namespace {

constexpr std::uint64_t line = 64;

CacheSizes sizes_at(const topology::Topology& topology, unsigned cpu) {
    CacheSizes sizes;
    const auto core = topology.core_of(cpu);
    for (const auto& cache : topology.caches) { // by level
        if (cache.type == topology::Cache::Type::instruction || !cache.cpus.contains(cpu)) continue;
        if (cache.level == 1) sizes.first = cache.size_bytes;
        if (core.contains(cache.cpus)) sizes.own = std::max(sizes.own, cache.size_bytes);
        sizes.last = std::max(sizes.last, cache.size_bytes);
    }
    if (sizes.own == 0) sizes.own = sizes.first;
    return sizes;
}

/// The first CPU of `cpus` that is so near; of `other_node` the farthest.
std::optional<unsigned> cpu_at(const Nearness& nearness, const CpuSet& cpus, unsigned home, Near near) {
    for (const unsigned cpu : cpus)
        if (cpu != home && nearness.between(home, cpu) == near) return cpu;
    return std::nullopt;
}

CacheSeats seats_from(const topology::Topology& topology, const Nearness& nearness, const CpuSet& cpus,
                      unsigned home) {
    CacheSeats seats{.home = home,
                     .group = cpu_at(nearness, cpus, home, Near::llc),
                     .other_llc = cpu_at(nearness, cpus, home, Near::node),
                     .other_node = cpu_at(nearness, cpus, home, Near::across),
                     .sizes = sizes_at(topology, home)};
    if (!seats.other_node) seats.other_node = cpu_at(nearness, cpus, home, Near::package);
    return seats;
}

int reached(const CacheSeats& seats) {
    return seats.group.has_value() + seats.other_llc.has_value() + seats.other_node.has_value();
}

void add_refusals(const CpuSet& cpus, CacheSeats& seats) {
    const std::string whom = "CPU " + std::to_string(seats.home) + "'s ";
    const std::string among = " is among " + words_of(cpus) + ", which may be used here";
    if (!seats.group)
        seats.refused.push_back("\"same LLC\" is not measured: no other core of " + whom +
                                "last-level cache" + among);
    if (!seats.other_llc && !seats.other_node)
        seats.refused.push_back("low affinity is not measured: " + sentence_of(Refusal::one_llc, cpus));
    else if (!seats.other_llc)
        seats.refused.push_back("\"other LLC\" is not measured: no CPU of another last-level cache of " +
                                whom + "node" + among);
    else if (!seats.other_node)
        seats.refused.push_back("\"other node\" is not measured: no CPU of another node than " + whom +
                                "own" + among);
}

std::uint64_t whole_lines(std::uint64_t bytes) {
    return std::min(std::max<std::uint64_t>(bytes / line, 4) * line, most_footprint);
}

} // namespace

std::string_view name_of(Place place) {
    constexpr std::array names{
        "same CPU", "same CPU, L1/L2 lost", "same CPU, all lost", "same LLC", "other LLC", "other node"};
    return names[static_cast<std::size_t>(place)];
}

std::string_view key_of(Place place) {
    constexpr std::array keys{"kept", "displaced", "emptied", "group", "other_llc", "other_node"};
    return keys[static_cast<std::size_t>(place)];
}

std::optional<unsigned> CacheSeats::of(Place place) const {
    switch (place) {
    case Place::group:
        return group;
    case Place::other_llc:
        return other_llc;
    case Place::other_node:
        return other_node;
    default:
        return home;
    }
}

std::expected<CacheSeats, Refusal> cache_seats(const topology::Topology& topology, const CpuSet& cpus,
                                               const CacheSizes& otherwise) {
    if (cpus.empty()) return std::unexpected(Refusal::one_cpu);
    const Nearness nearness(topology);
    std::optional<CacheSeats> best;
    const auto choose = [&](bool is_recorded) {
        for (const unsigned cpu : cpus) {
            auto seats = seats_from(topology, nearness, cpus, cpu);
            seats.are_sizes_recorded = seats.sizes.first != 0;
            if (seats.are_sizes_recorded != is_recorded) continue;
            if (!best || reached(seats) > reached(*best)) best = std::move(seats);
            if (reached(*best) == 3) break;
        }
    };
    choose(true);
    if (!best && otherwise.first != 0) {
        choose(false);
        best->sizes = otherwise;
    }
    if (!best) return std::unexpected(Refusal::no_caches);
    add_refusals(cpus, *best);
    return *best;
}

std::vector<std::uint64_t> footprints_for(const CacheSizes& sizes) {
    std::vector<std::uint64_t> all{sizes.first / 2, sizes.first, sizes.own / 2, sizes.own,
                                   sizes.last / 2,  sizes.last,  sizes.last * 2};
    all.push_back(static_cast<std::uint64_t>(
        std::sqrt(static_cast<double>(sizes.own) * static_cast<double>(sizes.last))));
    for (auto& bytes : all)
        bytes = whole_lines(bytes);
    std::ranges::sort(all);
    const auto same = std::ranges::unique(all);
    all.erase(same.begin(), same.end());
    return all;
}

std::string bytes_words(std::uint64_t bytes) {
    constexpr std::array units{"KiB", "MiB", "GiB"};
    double size = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    for (; size >= 1024 && unit + 1 < units.size(); ++unit)
        size /= 1024;
    return size < 999.5 ? fmt::format("{:.3g} {}", size, units[unit])
                        : fmt::format("{:.0f} {}", size, units[unit]);
}

namespace {

std::uint64_t told(int name) { return static_cast<std::uint64_t>(std::max(0L, ::sysconf(name))); }

} // namespace

CacheSizes sizes_of_c_library() {
    const auto first = told(_SC_LEVEL1_DCACHE_SIZE);
    if (first == 0) return {};
    const auto own = std::max(first, told(_SC_LEVEL2_CACHE_SIZE));
    return {first, own, std::max({own, told(_SC_LEVEL3_CACHE_SIZE), told(_SC_LEVEL4_CACHE_SIZE)})};
}

std::string remark_of_c_library(const CacheSizes& sizes) {
    return fmt::format(
        "the kernel does not say how large the caches are: these are the C library's sizes (getconf -a), of "
        "which the last level, {}, may be that of all cores together; --caches gives others",
        bytes_words(sizes.last));
}

} // namespace affinityd::experiments

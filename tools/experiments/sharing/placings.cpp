// SPDX-License-Identifier: Apache-2.0
#include "experiments/sharing/placings.hpp"

namespace affinityd::experiments {

namespace {

/// Two pairs without a CPU in common where there are four CPUs, else one pair twice.
struct TwoPairs {
    CpuPair first, second;
};

/// The nearest of all pairs, or with `far` the farthest; there are at least two CPUs.
std::optional<CpuPair> best_pair(const Nearness& nearness, const CpuSet& cpus, bool far) {
    for (std::size_t i = 0; i < near_ones.size(); ++i)
        if (const auto pair = nearness.first_pair(cpus, near_ones[far ? near_ones.size() - 1 - i : i]))
            return pair;
    return std::nullopt;
}

TwoPairs two_pairs(const topology::Topology& topology, const CpuSet& cpus, bool far) {
    const Nearness nearness(topology);
    const auto first = best_pair(nearness, cpus, far).value_or(CpuPair{});
    CpuSet others = cpus - CpuSet{first.a, first.b};
    // Of other cores, if there are such: the pairs are not to be in each other's way.
    const auto elsewhere = others - topology.core_of(first.a) - topology.core_of(first.b);
    if (elsewhere.count() >= 2) others = elsewhere;
    return {first, best_pair(nearness, others, far).value_or(first)};
}

/// Two CPUs, of different cores where there are two.
CpuPair two_cpus(const topology::Topology& topology, const CpuSet& cpus) {
    const auto cores = one_per_core(topology, cpus);
    return *best_pair(Nearness(topology), cores.count() >= 2 ? cores : cpus, false);
}

PlacedThreads placed_as(Placing placing, unsigned a0, unsigned b0, unsigned a1, unsigned b1) {
    return {placing, {CpuSet{a0}, CpuSet{b0}, CpuSet{a1}, CpuSet{b1}}};
}

} // namespace

std::string_view name_of(Placing placing) {
    constexpr std::array names{"left to the scheduler", "pinned pairs", "pinned neighbours", "pinned apart",
                               "false sharing"};
    return names[static_cast<std::size_t>(placing)];
}

std::string_view key_of(Placing placing) {
    constexpr std::array keys{"scheduler", "pairs", "neighbours", "apart", "false_sharing"};
    return keys[static_cast<std::size_t>(placing)];
}

std::expected<std::vector<PlacedThreads>, Refusal> placed_threads(const topology::Topology& topology,
                                                                  const CpuSet& cpus) {
    if (cpus.count() < 2) return std::unexpected(Refusal::one_cpu);
    std::vector<PlacedThreads> all{{Placing::scheduler, {cpus, cpus, cpus, cpus}}};
    const Nearness nearness(topology);
    const auto own = two_cpus(topology, cpus);
    all.push_back(placed_as(Placing::pairs, own.a, own.b, own.a, own.b));
    if (cpus.count() >= sharing_threads) {
        const auto near = two_pairs(topology, cpus, false);
        all.push_back(
            placed_as(Placing::neighbours, near.first.a, near.second.a, near.first.b, near.second.b));
        all.back().near = nearness.between(near.first.a, near.first.b);
    }
    const auto far = two_pairs(topology, cpus, true);
    all.push_back(placed_as(Placing::apart, far.first.a, far.second.a, far.first.b, far.second.b));
    all.back().near = nearness.between(far.first.a, far.first.b);
    all.push_back(placed_as(Placing::one_line, own.a, own.b, own.a, own.b));
    return all;
}

} // namespace affinityd::experiments

// SPDX-License-Identifier: Apache-2.0
#include "experiments/latency/pairs.hpp"

#include <algorithm>
#include <random>

namespace affinityd::experiments {

namespace {

constexpr std::size_t few_cores = 32; ///< of an LLC group: all pairs of them are measured
constexpr std::size_t partners = 24;  ///< of each core of a larger group
constexpr std::size_t between_groups = 4;

CpuPair ordered(unsigned a, unsigned b) { return a < b ? CpuPair{a, b} : CpuPair{b, a}; }

std::vector<CpuPair> each_with_each(const std::vector<unsigned>& cpus) {
    std::vector<CpuPair> pairs;
    for (std::size_t b = 0; b < cpus.size(); ++b)
        for (std::size_t a = 0; a < b; ++a)
            pairs.push_back(ordered(cpus[a], cpus[b]));
    return pairs;
}

/// Every CPU gets partners near and far in the order of numbers: as meshes are numbered, all over the mesh.
std::vector<CpuPair> part_of_each_with_each(const std::vector<unsigned>& cpus) {
    if (cpus.size() <= few_cores) return each_with_each(cpus);
    std::vector<CpuPair> pairs;
    const auto step = std::max<std::size_t>(1, cpus.size() / partners);
    for (std::size_t a = 0; a < cpus.size(); ++a)
        for (std::size_t away = 1; away <= cpus.size() / 2; away += step)
            pairs.push_back(ordered(cpus[a], cpus[(a + away) % cpus.size()]));
    return pairs;
}

/// By LLC group, one CPU of each core.
std::vector<std::vector<unsigned>> cores_by_llc(const topology::Topology& topology, const CpuSet& cpus) {
    std::vector<std::vector<unsigned>> groups;
    const auto chosen = one_per_core(topology, cpus);
    for (const auto& llc : topology.llc_groups())
        if (const auto members = llc & chosen; !members.empty()) groups.push_back(members.to_vector());
    return groups;
}

std::vector<CpuPair> some_pairs(const topology::Topology& topology, const CpuSet& cpus) {
    auto pairs = Nearness(topology).pairs(cpus, Near::core);
    const auto groups = cores_by_llc(topology, cpus);
    for (std::size_t b = 0; b < groups.size(); ++b) {
        const auto within = part_of_each_with_each(groups[b]);
        pairs.insert(pairs.end(), within.begin(), within.end());
        for (std::size_t a = 0; a < b; ++a)
            for (std::size_t i = 0; i < between_groups; ++i) {
                // Other members each time, and for each two groups.
                const auto of_a = groups[a][(i + b) % groups[a].size()];
                const auto of_b = groups[b][(i + a) % groups[b].size()];
                pairs.push_back(ordered(of_a, of_b));
            }
    }
    return pairs;
}

std::vector<unsigned> first_of_each_llc(const topology::Topology& topology, const CpuSet& cpus) {
    std::vector<unsigned> firsts;
    for (const auto& group : cores_by_llc(topology, cpus))
        firsts.push_back(group.front());
    std::ranges::sort(firsts);
    return firsts;
}

} // namespace

std::expected<std::vector<CpuPair>, Refusal> choose_pairs(const topology::Topology& topology,
                                                          const CpuSet& cpus, PairChoice choice) {
    if (cpus.count() < 2) return std::unexpected(Refusal::one_cpu);
    std::vector<CpuPair> pairs;
    if (choice == PairChoice::core) {
        pairs = each_with_each(one_per_core(topology, cpus).to_vector());
        if (pairs.empty()) return std::unexpected(Refusal::one_core);
    } else if (choice == PairChoice::llc) {
        pairs = each_with_each(first_of_each_llc(topology, cpus));
        if (pairs.empty()) return std::unexpected(Refusal::one_llc);
    } else if (choice == PairChoice::all || cpus.count() <= few_cpus) {
        pairs = each_with_each(cpus.to_vector());
    } else {
        pairs = some_pairs(topology, cpus);
    }
    std::ranges::sort(pairs);
    const auto same = std::ranges::unique(pairs);
    pairs.erase(same.begin(), same.end());
    std::mt19937 order(1); // NOLINT(cert-msc51-cpp): the same order each time is wanted
    for (std::size_t left = pairs.size(); left > 1; --left)
        std::swap(pairs[left - 1], pairs[order() % left]);
    return pairs;
}

} // namespace affinityd::experiments

// SPDX-License-Identifier: Apache-2.0
#include "planner/closeness.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace affinityd::planner {

namespace {

using Groups = std::vector<CpuSet>;

constexpr std::uint32_t level_step = 1'000'000;      ///< more than any NUMA distance adds
constexpr Closeness::Distance farthest = 1ULL << 48; ///< more than a minute, if it is a time

/// How many CPUs a group has on average.
double size_of(const Groups& groups) {
    std::size_t sum = 0;
    for (const auto& group : groups)
        sum += group.count();
    return static_cast<double>(sum) / static_cast<double>(groups.size());
}

/// What the machine is made of, fine to coarse: a node may be part of a package, or have several.
std::vector<Groups> levels_of(const topology::Topology& topology) {
    std::vector<Groups> levels{topology.cores};
    unsigned highest = 0;
    for (const auto& cache : topology.caches)
        highest = std::max(highest, cache.level);
    for (unsigned level = 2; level < highest; ++level)
        levels.push_back(topology.cache_groups(level));
    levels.push_back(topology.clusters);
    levels.push_back(topology.llc_groups());
    levels.push_back(topology.dies);
    Groups nodes;
    for (const auto& node : topology.nodes)
        nodes.push_back(node.cpus);
    levels.push_back(std::move(nodes));
    for (const auto* groups : {&topology.packages, &topology.books, &topology.drawers})
        levels.push_back(*groups);
    std::erase_if(levels, &Groups::empty);
    std::ranges::stable_sort(levels, {}, size_of);
    return levels;
}

/// The NUMA distance of two CPUs; 0: not recorded.
std::uint32_t numa_distance(const topology::Topology& topology, unsigned a, unsigned b) {
    const auto* from = topology.find(a);
    const auto* to = topology.find(b);
    if (from == nullptr || to == nullptr || !from->node || !to->node) return 0;
    const auto* node = topology.node(*from->node);
    for (std::size_t i = 0; node != nullptr && i < topology.nodes.size() && i < node->distance.size(); ++i)
        if (topology.nodes[i].id == *to->node) return std::min(node->distance[i], level_step - 1);
    return 0;
}

Closeness::Distance femtoseconds(double ns) {
    return static_cast<Closeness::Distance>(std::min(std::round(ns * 1e6), static_cast<double>(farthest)));
}

} // namespace

Closeness::Closeness(const topology::Topology& topology, std::shared_ptr<const machine::LatencyMatrix> matrix)
    : online_(topology.online), matrix_(std::move(matrix)) {
    const auto cpus = online_.to_vector();
    count_ = cpus.size();
    place_.resize(cpus.empty() ? 0 : cpus.back() + 1U);
    for (std::size_t i = 0; i < count_; ++i)
        place_[cpus[i]] = i;
    const auto levels = levels_of(topology);
    std::vector<std::uint32_t> steps(count_ * count_,
                                     static_cast<std::uint32_t>(levels.size() + 1) * level_step);
    for (std::size_t level = levels.size(); level-- > 0;)
        for (const auto& group : levels[level]) {
            const auto members = (group & online_).to_vector();
            for (const unsigned a : members)
                for (const unsigned b : members)
                    steps[index(a, b)] = static_cast<std::uint32_t>(level + 1) * level_step;
        }
    for (const unsigned a : cpus)
        for (const unsigned b : cpus)
            steps[index(a, b)] = a == b ? 0 : steps[index(a, b)] + numa_distance(topology, a, b);
    if (matrix_ == nullptr)
        distances_.assign(steps.begin(), steps.end());
    else
        estimate(steps);
}

/// Of pairs of which nothing was measured, what was measured of others that are as close by topology tells.
void Closeness::estimate(const std::vector<std::uint32_t>& steps) {
    std::map<std::uint32_t, std::vector<Distance>> known; // by topology
    const auto cpus = online_.to_vector();
    distances_.assign(count_ * count_, 0);
    Distance most = 0;
    for (const unsigned a : cpus)
        for (const unsigned b : cpus) {
            const auto ns = a == b ? std::nullopt : matrix_->ns(a, b);
            if (!ns) continue;
            auto& distance = distances_[index(a, b)];
            distance = std::max(Distance{1}, femtoseconds(*ns));
            known[steps[index(a, b)]].push_back(distance);
            most = std::max(most, distance);
        }
    for (auto& [step, values] : known)
        std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
    for (const unsigned a : cpus)
        for (const unsigned b : cpus) {
            if (a == b || distances_[index(a, b)] != 0) continue;
            const auto found = known.find(steps[index(a, b)]);
            distances_[index(a, b)] = found == known.end() ? most + steps[index(a, b)] / level_step
                                                           : found->second[found->second.size() / 2];
        }
}

Closeness::Distance Closeness::between(unsigned a, unsigned b) const {
    if (!online_.contains(a) || !online_.contains(b)) return farthest;
    return distances_[index(a, b)];
}

Closeness::Distance Closeness::between(const CpuSet& a, const CpuSet& b) const {
    Distance sum = 0;
    for (const unsigned from : a)
        for (const unsigned to : b)
            sum += between(from, to);
    return sum / (a.count() * b.count());
}

Closeness::Distance Closeness::usual(const CpuSet& a, const CpuSet& b) const {
    if (matrix_ == nullptr) return between(a, b);
    Distance sum = 0;
    for (const unsigned from : a)
        for (const unsigned to : b)
            sum += from == to ? 0 : femtoseconds(matrix_->usual_ns(from, to));
    return sum / (a.count() * b.count());
}

std::optional<double> Closeness::ns(unsigned a, unsigned b) const {
    return matrix_ == nullptr ? std::nullopt : matrix_->measured().ns(a, b);
}

bool Closeness::is_of(const topology::Topology& topology,
                      const std::shared_ptr<const machine::LatencyMatrix>& matrix) const {
    return matrix == matrix_ && topology.online == online_;
}

} // namespace affinityd::planner

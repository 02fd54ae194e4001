// SPDX-License-Identifier: Apache-2.0
#include "planner/goodness.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace affinityd::planner {

namespace {

/// More sets than these are not compared with each other.
constexpr std::size_t most_sets = 64;

/// Of n pieces on m cores, some core has at least k + 1 of the k * m + 1 largest.
Weight least_by_pieces(std::vector<Weight> pieces, std::size_t cores) {
    std::ranges::sort(pieces, std::greater<>());
    Weight least = 0;
    for (std::size_t k = 0; k * cores < pieces.size(); ++k)
        least = std::max(least, static_cast<Weight>(k + 1) * pieces[k * cores]);
    return least;
}

Weight least_within(const CpuSet& cpus, const std::vector<Confined>& work, const CpuLoad& fixed) {
    CpuSet cores;
    Weight total = 0;
    for (const unsigned cpu : cpus) {
        cores.insert(fixed.core_of(cpu));
        total += fixed.on_cpu(cpu);
    }
    std::vector<Weight> pieces;
    for (const auto& confined : work) {
        if (!cpus.contains(confined.cpus)) continue;
        total += confined.total;
        pieces.insert(pieces.end(), confined.pieces.begin(), confined.pieces.end());
    }
    const auto count = cores.count();
    return std::max(total / static_cast<Weight>(count), least_by_pieces(std::move(pieces), count));
}

std::string cpus_text(Weight load) {
    return fmt::format("{:.2f}", static_cast<double>(load) / static_cast<double>(one_cpu));
}

} // namespace

Weight least_busiest(const std::vector<Confined>& work, const CpuLoad& fixed) {
    CpuSet all;
    std::vector<CpuSet> sets;
    for (const auto& confined : work) {
        all |= confined.cpus;
        if (sets.size() < most_sets) sets.push_back(confined.cpus);
    }
    Weight least = fixed.busiest();
    if (all.empty()) return least;
    sets.push_back(std::move(all));
    std::ranges::sort(sets);
    sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
    for (const auto& set : sets)
        least = std::max(least, least_within(set, work, fixed));
    return least;
}

double Goodness::balance() const {
    if (busiest <= 0) return 1;
    return std::min(1.0, static_cast<double>(least) / static_cast<double>(busiest));
}

std::string to_string(const Goodness& goodness) {
    return fmt::format("balance {:.2f}: the busiest core has {} CPUs of work, {} at best; {} tasks off their "
                       "interface's node, {} "
                       "sharing a core while another is free, {} moved",
                       goodness.balance(), cpus_text(goodness.busiest),
                       cpus_text(std::min(goodness.least, goodness.busiest)), goodness.off_node,
                       goodness.paired, goodness.moves);
}

} // namespace affinityd::planner

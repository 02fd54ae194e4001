// SPDX-License-Identifier: Apache-2.0
#include "planner/company_choice.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace affinityd::planner {

namespace {

/// To halves of a CPU: with less than a quarter, it is free.
Weight in_halves(Weight load) { return (load * 2 + one_cpu / 2) / one_cpu * one_cpu / 2; }

} // namespace

CompanyChoice::CompanyChoice(std::span<const Slot> slots, const CpuLoad& others, const CompanySums& sums)
    : slots_(slots), sums_(sums) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const auto cpus = sums.slots()[i];
        const auto count = static_cast<Weight>(cpus.size());
        const auto level = others.place(cpus);
        by_others_.emplace_back(in_halves(level.core / count), in_halves(level.cpu / count));
    }
}

/// Members do not keep each other off the other hardware threads of their cores: `smt: avoid` does.
CompanyChoice::Busy CompanyChoice::busy(std::size_t slot) const {
    const auto [core, cpu] = by_others_[slot];
    const Weight mates = sums_.mates(slot) / static_cast<Weight>(sums_.slots()[slot].size());
    return {core + mates, cpu + mates};
}

/// The way to the closest of these, itself left out.
Closeness::Distance CompanyChoice::to_partner(std::size_t slot,
                                              const std::vector<std::size_t>& partners) const {
    auto least = std::numeric_limits<Closeness::Distance>::max();
    const auto own = sums_.slots()[slot];
    for (const std::size_t i : partners)
        if (i != slot) least = std::min(least, sums_.closeness().between(own, sums_.slots()[i]));
    return least;
}

std::size_t CompanyChoice::next(const CpuSet* present) const {
    std::vector<Busy> all(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i)
        all[i] = busy(i);
    const Busy free = *std::ranges::min_element(all);
    std::vector<std::size_t> partners;
    if (!sums_.has_members() && slots_.size() > 1) {
        // If only one is free, its partner will be of those that are second.
        auto sorted = all;
        std::ranges::nth_element(sorted, sorted.begin() + 1);
        for (std::size_t i = 0; i < slots_.size(); ++i)
            if (all[i] <= sorted[1]) partners.push_back(i);
    }
    std::size_t best = 0;
    std::optional<std::pair<bool, Closeness::Distance>> least;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (all[i] != free) continue;
        const std::pair rank{present != nullptr && slots_[i].mask != *present,
                             sums_.has_members() ? sums_.ways(i) : to_partner(i, partners)};
        if (least && *least <= rank) continue;
        least = rank;
        best = i;
    }
    return best;
}

} // namespace affinityd::planner

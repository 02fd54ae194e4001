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

void CompanyChoice::add(const CpuSet& cpus, unsigned tasks) {
    has_members_ = has_members_ || tasks > 0;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const auto here = static_cast<Weight>((cpus & slots_[i].cpus).count());
        mates_[i] += here * tasks * one_cpu / static_cast<Weight>(cpus.count());
        sums_[i] += tasks * closeness_.between(slots_[i].cpus, cpus);
    }
}

/// Members do not keep each other off the other hardware threads of their cores: `smt: avoid` does.
CompanyChoice::Busy CompanyChoice::busy(std::size_t slot) const {
    const auto count = static_cast<Weight>(slots_[slot].cpus.count());
    const auto level = others_.place(slots_[slot].cpus.to_vector());
    const Weight mates = mates_[slot] / count;
    return {in_halves(level.core / count) + mates, in_halves(level.cpu / count) + mates};
}

/// The way to the closest other slot that is as free.
Closeness::Distance CompanyChoice::to_partner(std::size_t slot, const std::vector<Busy>& busy,
                                              const Busy& free) const {
    auto least = std::numeric_limits<Closeness::Distance>::max();
    for (std::size_t i = 0; i < slots_.size(); ++i)
        if (i != slot && busy[i] <= free)
            least = std::min(least, closeness_.between(slots_[slot].cpus, slots_[i].cpus));
    return least;
}

std::size_t CompanyChoice::next(const CpuSet* present) const {
    std::vector<Busy> all(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i)
        all[i] = busy(i);
    const Busy free = *std::ranges::min_element(all);
    // If only one is free, its partner will be of those that are second.
    Busy second = free;
    if (!has_members_ && slots_.size() > 1) {
        auto sorted = all;
        std::ranges::nth_element(sorted, sorted.begin() + 1);
        second = sorted[1];
    }
    std::size_t best = 0;
    std::optional<std::pair<bool, Closeness::Distance>> least;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (all[i] != free) continue;
        const std::pair rank{present != nullptr && slots_[i].mask != *present,
                             has_members_ ? sums_[i] : to_partner(i, all, second)};
        if (least && *least <= rank) continue;
        least = rank;
        best = i;
    }
    return best;
}

} // namespace affinityd::planner

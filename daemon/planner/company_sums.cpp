// SPDX-License-Identifier: Apache-2.0
#include "planner/company_sums.hpp"

#include <algorithm>

namespace affinityd::planner {

void CompanySums::change(const CpuSet& cpus, unsigned before, unsigned after) {
    members_ += after;
    members_ -= before;
    const auto there = cpus.to_vector();
    const auto count = static_cast<Weight>(there.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const auto slot = slots_[i];
        const auto way = closeness_->between(slot, there);
        ways_[i] += after * way;
        ways_[i] -= before * way;
        const Weight here = std::ranges::count_if(slot, [&](unsigned cpu) { return cpus.contains(cpu); });
        if (here > 0) mates_[i] += here * after * one_cpu / count - here * before * one_cpu / count;
    }
}

} // namespace affinityd::planner

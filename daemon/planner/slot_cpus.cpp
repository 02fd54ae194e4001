// SPDX-License-Identifier: Apache-2.0
#include "planner/slot_cpus.hpp"

namespace affinityd::planner {

void SlotCpus::be_of(std::span<const Slot> slots, bool lasting) {
    if (lasting && of_ == slots.data() && ends_.size() == slots.size()) return;
    *this = {};
    of_ = lasting ? slots.data() : nullptr;
    for (const auto& slot : slots) {
        for (const unsigned cpu : slot.cpus)
            cpus_.push_back(cpu);
        ends_.push_back(cpus_.size());
    }
}

bool SlotCpus::are_of(std::span<const Slot> slots) const {
    const SlotCpus other(slots);
    return ends_ == other.ends_ && cpus_ == other.cpus_;
}

} // namespace affinityd::planner

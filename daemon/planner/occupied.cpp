// SPDX-License-Identifier: Apache-2.0
#include "planner/occupied.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::planner {

unsigned Occupied::enter(const CpuSet& cpus) {
    for (auto [at, end] = numbers_.equal_range(cpus.first()); at != end; ++at) {
        auto& place = places_[at->second];
        if (place.cpus != cpus) continue;
        ++place.tasks;
        return at->second;
    }
    if (unused_.empty()) {
        unused_.push_back(static_cast<unsigned>(places_.size()));
        places_.emplace_back();
    }
    const unsigned number = unused_.back();
    unused_.pop_back();
    places_[number] = {.cpus = cpus, .tasks = 1};
    numbers_.emplace(cpus.first(), number);
    return number;
}

void Occupied::leave(unsigned place) {
    if (--places_[place].tasks > 0) return;
    const auto [begin, end] = numbers_.equal_range(places_[place].cpus.first());
    numbers_.erase(std::ranges::find(begin, end, place, [](const auto& entry) { return entry.second; }));
    places_[place] = {};
    unused_.push_back(place);
}

} // namespace affinityd::planner

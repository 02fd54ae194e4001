// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/cpu_load.hpp"

#include <unordered_map>
#include <vector>

namespace affinityd::planner {

/// The CPUs on which tasks of one distribution sit, and the work that they do there. Each set of CPUs counts
/// for itself: a slot of one name may have others after a while, or in a cpuset.
class Occupied {
  public:
    struct Place {
        CpuSet cpus;
        Weight sum = 0; ///< of its tasks
        unsigned tasks = 0;
    };
    /// The number of these CPUs, which must not be empty; it is theirs for as long as tasks are there.
    unsigned enter(const CpuSet& cpus);
    void leave(unsigned place);
    /// Adds to what the tasks of a place do there.
    void weigh(unsigned place, Weight weight) { places_[place].sum += weight; }
    [[nodiscard]] const Place& operator[](unsigned place) const { return places_[place]; }
    /// Those that are not in use have no work.
    [[nodiscard]] auto begin() const { return places_.begin(); }
    [[nodiscard]] auto end() const { return places_.end(); }

  private:
    std::vector<Place> places_;
    std::unordered_multimap<unsigned, unsigned> numbers_; ///< by the first CPU
    std::vector<unsigned> unused_;
};

} // namespace affinityd::planner

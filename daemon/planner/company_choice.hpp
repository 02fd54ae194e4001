// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/closeness.hpp"
#include "planner/cpu_load.hpp"
#include "planner/slots.hpp"

#include <cstddef>
#include <span>
#include <tuple>
#include <vector>

namespace affinityd::planner {

/// Chooses slots for tasks that belong together, one after the other.
class CompanyChoice {
  public:
    /// `others`: the load without the company. All must outlive it.
    CompanyChoice(std::span<const Slot> slots, CpuLoad others, const Closeness& closeness)
        : slots_(slots), others_(std::move(others)), closeness_(closeness), mates_(slots.size()),
          sums_(slots.size()) {}

    /// So many members sit there: on slots, or elsewhere.
    void add(const CpuSet& cpus, unsigned tasks);
    /// The best slot for one more; `present`: the mask that it has, which it keeps among equally free slots;
    /// null: that does not count.
    [[nodiscard]] std::size_t next(const CpuSet* present) const;

  private:
    using Busy = std::pair<Weight, Weight>; ///< of its cores by others and by members; of its CPUs
    [[nodiscard]] Busy busy(std::size_t slot) const;
    [[nodiscard]] Closeness::Distance to_partner(std::size_t slot, const std::vector<Busy>& busy,
                                                 const Busy& free) const;

    std::span<const Slot> slots_;
    CpuLoad others_;
    const Closeness& closeness_;
    std::vector<Weight> mates_;             ///< by slot: work of members there, a CPU each
    std::vector<Closeness::Distance> sums_; ///< by slot: of the ways to all members
    bool has_members_ = false;
};

} // namespace affinityd::planner

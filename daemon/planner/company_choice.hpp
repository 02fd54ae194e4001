// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/company_sums.hpp"
#include "planner/cpu_load.hpp"
#include "planner/slots.hpp"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace affinityd::planner {

/// Chooses slots for tasks that belong together, one after the other.
class CompanyChoice {
  public:
    /// `others`: the load without the company. `sums` of these slots; who is chosen is to be added there.
    /// Both must outlive it.
    CompanyChoice(std::span<const Slot> slots, const CpuLoad& others, const CompanySums& sums);

    /// The best slot for one more; `present`: the mask that it has, which it keeps among equally free slots;
    /// null: that does not count.
    [[nodiscard]] std::size_t next(const CpuSet* present) const;

  private:
    using Busy = std::pair<Weight, Weight>; ///< of its cores by others and by members; of its CPUs
    [[nodiscard]] Busy busy(std::size_t slot) const;
    [[nodiscard]] Closeness::Distance to_partner(std::size_t slot,
                                                 const std::vector<std::size_t>& partners) const;

    std::span<const Slot> slots_;
    const CompanySums& sums_;
    std::vector<Busy> by_others_; ///< by slot
};

} // namespace affinityd::planner

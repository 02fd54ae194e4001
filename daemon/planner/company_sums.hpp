// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/closeness.hpp"
#include "planner/cpu_load.hpp"
#include "planner/slot_cpus.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace affinityd::planner {

/// For each of some slots, what the members of a company mean to it: their work on its CPUs, and the ways to
/// all of them. A member that comes or goes costs one look at each slot. A value.
class CompanySums {
  public:
    /// Of a company without members.
    CompanySums(std::span<const Slot> slots, std::shared_ptr<const Closeness> closeness)
        : slots_(slots), closeness_(std::move(closeness)), mates_(slots.size()), ways_(slots.size()) {}

    /// Where `before` members sat, on slots or elsewhere, sit `after`.
    void change(const CpuSet& cpus, unsigned before, unsigned after);

    /// True for slots with the same CPUs.
    [[nodiscard]] bool are_of(std::span<const Slot> slots) const { return slots_.are_of(slots); }
    [[nodiscard]] const Closeness& closeness() const { return *closeness_; }
    [[nodiscard]] const SlotCpus& slots() const { return slots_; }
    [[nodiscard]] bool has_members() const { return members_ > 0; }
    /// The work of members on all CPUs of a slot, a CPU each.
    [[nodiscard]] Weight mates(std::size_t slot) const { return mates_[slot]; }
    [[nodiscard]] Closeness::Distance ways(std::size_t slot) const { return ways_[slot]; }

  private:
    SlotCpus slots_;
    std::shared_ptr<const Closeness> closeness_; ///< never null
    std::size_t members_ = 0;
    std::vector<Weight> mates_;
    std::vector<Closeness::Distance> ways_;
};

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/slots.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace affinityd::planner {

/// The CPUs of all slots, one after the other: to go through a set takes longer on a large machine. A value.
class SlotCpus {
  public:
    SlotCpus() = default;
    explicit SlotCpus(std::span<const Slot> slots) { be_of(slots, false); }
    /// `lasting`: the slots stay where they are as long as this does; others are made for one question.
    void be_of(std::span<const Slot> slots, bool lasting);
    [[nodiscard]] std::size_t size() const { return ends_.size(); }
    [[nodiscard]] std::span<const unsigned> operator[](std::size_t slot) const {
        const std::size_t begin = slot == 0 ? 0 : ends_[slot - 1];
        return std::span(cpus_).subspan(begin, ends_[slot] - begin);
    }
    /// True for slots that have the same CPUs in the same order.
    [[nodiscard]] bool are_of(std::span<const Slot> slots) const;

  private:
    const Slot* of_ = nullptr; ///< the first of the slots; null: of none that last
    std::vector<unsigned> cpus_;
    std::vector<std::size_t> ends_; ///< of each slot's, in `cpus_`
};

} // namespace affinityd::planner

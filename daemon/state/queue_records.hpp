// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state/entry.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace affinityd::state {

/// The undo records of everything but tasks: a few thousand on the largest machines. A record keeps its slot
/// until it is erased, so that a walk over the slots may be interrupted.
class QueueRecords {
  public:
    [[nodiscard]] const planner::UndoRecord* find(const machine::Subject& subject) const;
    [[nodiscard]] const Entry* find_entry(const machine::Subject& subject) const; ///< nullptr: no record
    /// What was recorded last where the subject is, whatever its name was. nullptr: nothing.
    [[nodiscard]] const Entry* find_at_place_of(const machine::Subject& subject) const;
    /// Adds the record or replaces it, with the subject's newest number and name.
    void put(const machine::Subject& subject, planner::UndoRecord record);
    void erase(const machine::Subject& subject);

    [[nodiscard]] std::size_t size() const { return by_subject_.size(); }
    [[nodiscard]] std::size_t slots() const { return slots_.size(); } ///< slots are 0 .. slots() - 1
    /// nullptr: the slot is free.
    [[nodiscard]] const Entry* entry(std::size_t slot) const {
        return slots_[slot] ? &*slots_[slot] : nullptr;
    }
    /// All of them, or those of one device: those whose subject names exactly this device.
    [[nodiscard]] std::vector<Entry> all(std::optional<std::string_view> device) const;

  private:
    void leave_place(std::size_t slot);
    std::vector<std::optional<Entry>> slots_;
    std::vector<std::size_t> free_;
    std::unordered_map<machine::Subject, std::size_t> by_subject_;
    std::unordered_map<std::string, std::size_t> by_place_; ///< of those that have one
};

} // namespace affinityd::state

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"

#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// CPU time of a changing set of processes, without losing what a process used that has ended: its time goes
/// to the parent that waited for it, which is what is looked at where the parent is of the set too. What a
/// process used between the last look and its end is missed only if its parent is not. Values only.
class CpuLedger {
  public:
    /// One process as it stands now.
    struct Entry {
        TaskId id;
        int parent = 0;
        double seconds =
            0; ///< user and system time of its own and of the children it waited for, since its birth
    };

    /// `born_after`: processes that started later (clock ticks since boot) count from their birth, older ones
    /// from when they were first seen.
    explicit CpuLedger(std::uint64_t born_after = 0) : born_after_(born_after) {}

    /// All processes of the set that live now.
    void look(const std::vector<Entry>& living);
    /// The last figures of one that is ending, between two looks.
    void note(const Entry& entry);
    /// Seconds since the beginning; never falls.
    [[nodiscard]] double total() const { return total_; }

  private:
    struct Known {
        Entry entry;
        double before = 0;     ///< used before it counted
        bool is_final = false; ///< the figures are those at its end, with all children it waited for
        bool lives = true;
    };
    Known& know(const Entry& entry);
    Known* parent_of(const Entry& entry);
    Known* heir_of(const Entry& entry);
    void bury(Known& known);
    std::uint64_t born_after_;
    std::unordered_map<TaskId, Known> known_;
    double ended_ = 0;
    double total_ = 0;
};

} // namespace affinityd::app

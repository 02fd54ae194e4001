// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "planner/slots.hpp"

#include <compare>
#include <map>
#include <span>
#include <string>
#include <unordered_map>

namespace affinityd::planner {

/// What is distributed: one placement of one policy. The name survives re-plans and reloads.
struct DistributionId {
    std::string policy;
    unsigned rule = 0; ///< 0: the policy's own placement; i + 1: its thread rule i
    std::string
        among; ///< an interface: its lanes; "*": all lanes; "together[:CPU]": groups; "": the plain slots
    friend auto operator<=>(const DistributionId&, const DistributionId&) = default;
};

/// Which task has which slot: the planner's only memory. A task keeps its slot as long as the slot exists,
/// and returns to the first it was given when that comes back (a CPU that was offline for a while). A new
/// task gets the slot with the fewest tasks, the first of them in the distribution's order, and among equals
/// the one whose mask it already has, so that a restarted daemon moves no task. The same questions in the
/// same order give the same answers. A distribution of one slot needs no memory.
class Assignments {
  public:
    /// Index of the task's slot; `slots` must not be empty. `present` is its mask now (may be empty).
    std::size_t assign(const DistributionId& distribution, std::span<const Slot> slots, const TaskId& task,
                       const CpuSet& present);
    /// The task has gone: its slots are free.
    void leave(const TaskId& task);
    /// Forgets the slots of a policy that no longer exists.
    void forget_policy(std::string_view policy);

  private:
    struct Table {
        /// A slot's name is its first CPU.
        struct Place {
            unsigned now;
            unsigned given; ///< the first one that it was given
        };
        std::unordered_map<TaskId, Place> places;
        std::unordered_map<unsigned, unsigned> load; ///< slot -> tasks
        void move(Place& place, unsigned to);
        void unload(unsigned slot);
        [[nodiscard]] std::size_t least_loaded(std::span<const Slot> slots, const CpuSet& present) const;
    };
    std::map<DistributionId, Table> tables_;
};

} // namespace affinityd::planner

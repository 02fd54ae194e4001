// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "planner/slots.hpp"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>

namespace affinityd::planner {

/// What is dealt: one placement of one policy. The name survives re-plans and restarts of the world.
struct DealId {
    std::string policy;
    unsigned rule = 0; ///< 0: the policy's own placement; i + 1: its thread rule i
    std::string nic;   ///< the interface whose lanes are dealt, "" for none
    friend auto operator<=>(const DealId&, const DealId&) = default;
};

/// Who sits where: the planner's only memory. A unit keeps its seat as long as the seat is there, and returns
/// to the first it was given when that comes back (a CPU that was offline for a while); a new unit gets the
/// seat with the fewest units, the first of them in the deal's order, and among equals the one whose mask it
/// already has (so that a restarted daemon moves nobody). Same questions in the same order give the same
/// answers. Of a deal of one slot nothing is kept.
class Assignments {
  public:
    /// Index of the unit's slot; `slots` must not be empty. `present` is the unit's mask now (may be empty).
    std::size_t seat(const DealId& deal, std::span<const Slot> slots, const TaskId& unit,
                     const CpuSet& present);
    /// The unit has gone: its seats are free.
    void leave(const TaskId& unit);
    /// Forgets every unit for which `keep` is false: those that went unnoticed.
    void retain(const std::function<bool(const TaskId&)>& keep);
    /// Forgets the seats of a policy that is no longer there.
    void forget_policy(std::string_view policy);

    [[nodiscard]] std::size_t units() const;

  private:
    struct Table {
        struct Seat {
            unsigned now;   ///< first CPU of its slot's home
            unsigned given; ///< the same of the first slot it was dealt
        };
        std::unordered_map<TaskId, Seat> seats;
        std::unordered_map<unsigned, unsigned> load; ///< that CPU -> units
        void move(Seat& seat, unsigned to);
        void unload(unsigned seat);
        void remove(std::unordered_map<TaskId, Seat>::iterator at);
    };
    std::map<DealId, Table> tables_;
};

} // namespace affinityd::planner

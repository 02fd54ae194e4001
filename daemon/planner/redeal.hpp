// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/deal.hpp"
#include "planner/measurement.hpp"
#include "planner/seating.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace affinityd::planner {

/// Measures how well tasks are placed, and finds the few moves that make it better: tasks leave a core that
/// has more work than it need have. Who can stay, stays; nobody moves for a small gain (a fourteenth of what
/// the core has; of little work, a twelfth of a CPU or a sixth of it). A process that stays inside one group
/// leaves it as a whole.
///
/// Its work is bounded and done in small steps; the same tasks in the same slots give the same moves.
class Redeal {
  public:
    /// A task that is to change over from a slot to another of its distribution; a process, from a group to
    /// another, with a move for each of its tasks.
    struct Move {
        TaskId task;
        unsigned table; ///< its distribution in the assignments
        unsigned from;  ///< the first CPU of the slot that it has
        Slot to;
    };
    /// Both must outlive it. The assignments may change between two steps: moves that do not fit any more do
    /// nothing.
    Redeal(const Placements& placements, const Assignments& assignments)
        : seating_(placements, assignments) {}

    /// Goes on until the time is over. True: it has measured, and goodness() is known.
    bool measure(const std::function<bool()>& out_of_time);
    [[nodiscard]] bool is_measured() const { return measurement_.is_done(); }
    /// The same, and finds the moves. True: it is done.
    bool step(const std::function<bool()>& out_of_time);
    /// As it is, before any move.
    [[nodiscard]] const Goodness& goodness() const { return measurement_.goodness(); }
    [[nodiscard]] const std::vector<Move>& moves() const { return moves_; }

  private:
    enum class Stage : std::uint8_t { kinds, families, pieces, improve, moves, done };
    void work_some();
    void add_kind();
    void add_family(Seating::Family& family);
    void add_pieces();
    [[nodiscard]] bool list_moves();

    Seating seating_;
    Measurement measurement_;
    Deal deal_;
    Stage stage_ = Stage::kinds;
    std::size_t next_ = 0;                         ///< of the kinds, then of the pieces, then of the moves
    std::optional<Seating::FamilyId> last_family_; ///< that was added
    std::vector<Move> moves_;
};

} // namespace affinityd::planner

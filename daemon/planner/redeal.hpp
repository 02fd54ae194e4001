// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/assignments.hpp"
#include "planner/deal.hpp"
#include "planner/goodness.hpp"
#include "planner/placements.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::planner {

/// Measures how well tasks are placed, and finds the few moves that make it better: tasks leave a core that
/// has more work than it need have. Who can stay, stays; nobody moves for a small gain (a fourteenth of what
/// the core has; of little work, a twelfth of a CPU or a sixth of it). A process that stays inside one group
/// leaves it as a whole.
///
/// Its work is bounded; the same tasks in the same slots give the same moves.
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
        : placements_(placements), assignments_(assignments), load_(assignments.load()) {}

    /// Goes on until the time is over. True: it has measured, and goodness() is known.
    bool measure(const std::function<bool()>& out_of_time);
    [[nodiscard]] bool is_measured() const { return stage_ > Stage::measure; }
    /// The same, and finds the moves. True: it is done.
    bool step(const std::function<bool()>& out_of_time);
    /// As it is, before any move.
    [[nodiscard]] const Goodness& goodness() const { return goodness_; }
    [[nodiscard]] const std::vector<Move>& moves() const { return moves_; }

  private:
    /// What tasks of one distribution may have; those of all groups of a policy are one kind.
    struct Kind {
        std::vector<const Slot*> slots; ///< none: they are not known any more
        std::vector<unsigned> groups;   ///< of each slot
        CpuSet cpus;                    ///< of all of them
        const CpuSet* near = nullptr;   ///< the CPUs near its interface; null: it has none
        unsigned number = 0;            ///< in the deal
        Weight least = 0, of = 1;       ///< the part of a task, at least, that one core has to do
    };
    struct Item {
        TaskId task;
        const Kind* kind;
        unsigned table, before; ///< `before`: index of its slot as yet
    };
    /// A process that stays inside a group.
    struct Family {
        unsigned number = Deal::no_family;
        std::optional<std::pair<unsigned, unsigned>> seat; ///< distribution and name of the group
        std::vector<unsigned> items;
    };
    using FamilyId = std::pair<std::string, TaskId>; ///< policy, process

    struct Walk {
        std::size_t bucket = 0, buckets = 0;
    };

    void collect_some();
    void collect(const TaskId& task, const Assignments::Seat& seat);
    void add_families();
    const Kind& kind_of(unsigned table);
    Kind make_kind(const DistributionId& distribution);
    void look();
    [[nodiscard]] std::size_t paired() const;
    void list_moves();

    const Placements& placements_;
    const Assignments& assignments_;
    CpuLoad load_;
    Walk walk_;
    std::map<DistributionId, Kind> kinds_;
    std::map<unsigned, const Kind*> tables_;
    std::vector<std::pair<Item, Deal::Piece>> items_;
    std::map<FamilyId, Family> families_;
    Deal deal_;
    enum class Stage : std::uint8_t { collect, measure, improve, done } stage_ = Stage::collect;
    Goodness goodness_;
    std::vector<Move> moves_;
};

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/assignments.hpp"
#include "planner/goodness.hpp"
#include "planner/placements.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace affinityd::planner {

/// Measures how well tasks are placed, and finds the few moves that make it better: tasks leave a core that
/// has more work than it need have. Who can stay, stays; nobody moves for less than an eighth of a CPU, or a
/// tenth of what the core has.
///
/// It looks for chains: a task takes the slot of another, which goes on to a third. Its work is bounded; the
/// same tasks in the same slots give the same moves.
class Redeal {
  public:
    /// A task that is to change over from a slot to another of its distribution.
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

    /// Goes on until the time is over. True: it is done.
    bool step(const std::function<bool()>& out_of_time);
    /// As it is, before any move.
    [[nodiscard]] const Goodness& goodness() const { return goodness_; }
    [[nodiscard]] const std::vector<Move>& moves() const { return moves_; }

  private:
    struct Item {
        TaskId task;
        Weight weight = 0;
        unsigned table = 0;
        unsigned slot = 0, before = 0; ///< indexes; `before`: where it is as yet
    };
    struct Table {
        bool is_known = false;
        const std::vector<Slot>* slots = nullptr; ///< null: they are not known any more
        CpuSet cpus;                              ///< of all of them
        const CpuSet* near = nullptr;             ///< the CPUs near its interface; null: it has none
        struct Part {
            unsigned core;
            Weight cpus; ///< how many of the slot's are on it
        };
        std::vector<std::vector<Part>> parts;     ///< of each slot
        std::vector<std::vector<unsigned>> items; ///< by slot
    };
    /// A chain of moves that is being tried.
    struct Trial {
        Weight limit;                                    ///< no core that it touches may have more afterwards
        unsigned steps;                                  ///< moves that are left
        unsigned looks;                                  ///< at slots, that are left
        std::vector<std::pair<unsigned, unsigned>> done; ///< items, and the slots that they had
        [[nodiscard]] bool has_moved(unsigned item) const;
    };

    void collect(const TaskId& task, const Assignments::Seat& seat);
    Table& table(unsigned number);
    void measure();
    [[nodiscard]] bool shares_needlessly(unsigned core) const;
    [[nodiscard]] std::vector<unsigned> candidates(unsigned core, const Trial& trial) const;
    bool relieve(unsigned core, Trial& trial);
    bool move_one(unsigned core, const std::vector<unsigned>& items, Trial& trial);
    bool move_chain(unsigned core, const std::vector<unsigned>& items, Trial& trial);
    [[nodiscard]] Weight part_of(unsigned item, unsigned slot) const;
    [[nodiscard]] Weight busiest_with(unsigned item, unsigned slot) const;
    [[nodiscard]] Weight can_leave(unsigned core, const Trial& trial) const;
    void put(unsigned item, unsigned slot);
    void undo(Trial& trial, std::size_t to);
    void improve();
    void list_moves();

    const Placements& placements_;
    const Assignments& assignments_;
    CpuLoad load_;
    std::size_t bucket_ = 0, buckets_ = 0;
    std::vector<Item> items_;
    std::vector<Table> tables_;
    std::vector<Weight> cores_; ///< the load of each, by its first CPU
    std::map<unsigned, std::vector<std::pair<unsigned, unsigned>>>
        places_;              ///< core -> tables and slots on it
    std::set<unsigned> left_; ///< cores that may be relieved yet
    enum class Stage : std::uint8_t { collect, measure, improve, done } stage_ = Stage::collect;
    Goodness goodness_;
    std::vector<Move> moves_;
};

} // namespace affinityd::planner

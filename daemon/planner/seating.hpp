// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/assignments.hpp"
#include "planner/deal.hpp"
#include "planner/placements.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::planner {

/// All tasks that have slots, and what each of them might have: collected in small steps, and put into an
/// order that depends on nothing but the tasks and the policies.
class Seating {
  public:
    /// What tasks of one distribution may have, or as much of it as a cpuset leaves; those of all groups of a
    /// policy are one kind.
    struct Kind {
        std::vector<const Slot*> slots;     ///< none: they are not known any more
        std::vector<unsigned> groups;       ///< of each slot
        std::vector<Deal::Place> places;    ///< the same for the deal, which takes them
        CpuSet cpus;                        ///< of all of them
        const CpuSet* near = nullptr;       ///< the CPUs near its interface; null: it has none
        unsigned number = 0;                ///< among the kinds that have slots
        std::vector<std::vector<Slot>> cut; ///< those of `slots` that placements do not have
        Weight least = 0, of = 1;           ///< the part of a task, at least, that one core has to do
    };
    /// A process that stays inside a group.
    struct Family {
        std::optional<std::pair<unsigned, unsigned>> seat; ///< distribution and name of the group
        std::vector<unsigned> items;
        unsigned number = Deal::no_family; ///< in the deal
    };
    /// A task in a slot.
    struct Item {
        TaskId task;
        Weight weight, error; ///< `error`: how far the weight may be from the truth
        const Kind* kind;
        Family* family;         ///< null: it is in no group
        unsigned table, before; ///< `before`: index of its slot as yet
    };
    using FamilyId = std::pair<std::string, TaskId>; ///< policy, process

    /// Both must outlive it. The assignments may change between two steps.
    Seating(const Placements& placements, const Assignments& assignments)
        : placements_(placements), assignments_(assignments), load_(assignments.load()) {}

    /// Goes on until the time is over. True: all are seated.
    bool step(const std::function<bool()>& out_of_time);

    [[nodiscard]] const Placements& placements() const { return placements_; }
    [[nodiscard]] const CpuLoad& load() const { return load_; } ///< with all tasks
    [[nodiscard]] const std::vector<Item>& items() const { return items_; }
    [[nodiscard]] const std::string& policy_of(const Item& item) const {
        return assignments_.distribution(item.table).policy;
    }
    [[nodiscard]] const std::vector<Kind*>& kinds() const { return numbered_; } ///< that have slots
    [[nodiscard]] std::map<FamilyId, Family>& families() { return families_; }

  private:
    struct Walk {
        std::size_t bucket = 0, buckets = 0, items = 0;
    };
    void collect_some();
    void collect(const TaskId& task, const Assignments::Seat& seat);
    void number_kinds();
    void order_some();
    using KindId = std::pair<DistributionId, CpuSet>; ///< what cuts it; empty: nothing
    const Kind& kind_of(const Assignments::Seat& seat);
    [[nodiscard]] Kind make_kind(const KindId& id) const;
    void add_slots(Kind& kind, const std::vector<Slot>& slots, const CpuSet& cpuset, unsigned group) const;

    const Placements& placements_;
    const Assignments& assignments_;
    CpuLoad load_;
    Walk walk_;
    std::map<KindId, Kind> kinds_;
    std::vector<Kind*> numbered_;
    /// By distribution and cpuset.
    std::map<std::pair<unsigned, unsigned>, const std::pair<const KindId, Kind>*> tables_;
    std::map<int, std::vector<Item>> found_; ///< by task, roughly: each small enough to be sorted in one go
    std::vector<Item> items_;
    std::map<FamilyId, Family> families_;
    enum class Stage : std::uint8_t { collect, order, done } stage_ = Stage::collect;
};

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "planner/action.hpp"
#include "planner/cpu_load.hpp"
#include "planner/slots.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace affinityd::planner {

/// A request for a slot.
struct SlotRequest {
    const DistributionId& distribution;
    std::span<const Slot> slots; ///< must not be empty
    TaskId task;
    const CpuSet& present; ///< its mask now (may be empty)
    /// The unit of distribution: processes as a whole; threads, which stay close to others of their
    /// distribution; or either over lanes, which are taken in their order.
    enum class Unit : std::uint8_t { process, thread, lane } unit = Unit::process;
    const CpuSet* cpuset = nullptr; ///< it leaves no other slots, or less of these; null: it cuts nothing
    TaskId group_of = {}; ///< the process whose group these slots are in; {}: they are not those of a group
    bool is_near_others = false; ///< it is to be in the group of others of its distribution
    TaskId process = {};         ///< that of the task
    TaskId parent = {}; ///< the process that made it, if that is under the same policy; {}: it is not
    /// Tasks 2k and 2k + 1 of a process are a pair, and share a slot; no value: it is in none.
    std::optional<unsigned> number = {};
    /// CPUs where its process finds no memory: it gets a slot among them only if there is no other, or it is
    /// there already. Asked when it needs a new slot; null: none.
    const std::function<CpuSet()>* cramped = nullptr;
};

/// Which task has which slot, and how much work that puts on each CPU: the planner's only memory. The whole
/// machine has one load: all policies, thread rules and lanes count.
///
/// A task keeps its slot as long as the slot exists, and returns to the first it was given when that comes
/// back (a CPU that was offline for a while). If its slot has been divided (another `bind`), or was one of
/// slots that were a guess, it counts as new, with the weight that is known. A new task gets the slot with
/// the fewest tasks of its own family (the threads of a process, the workers of a master), then of its
/// distribution. Tasks that are known to be idle do not count, nor does the master itself; of readers, idle
/// ones stay apart, too, where the others leave a choice. Among equals it gets the slot whose cores have the
/// least load, then whose CPUs have; then
///  - the one whose mask it already has, so that a restarted daemon moves no task;
///  - the nearest to what the placement wants it near to;
///  - the one whose cache group, then whose node has the least load. Threads stay close to each other: those
///    of their own distribution do not count here.
///  - the first in the distribution's order.
/// The second task of a pair goes where the first is; later the odd one follows the even one.
/// Loads differ when they do by an eighth of a CPU. The same questions in the same order give the same
/// answers.
class Assignments {
  public:
    /// Index of the task's slot.
    std::size_t assign(const SlotRequest& request);
    /// True if processes that it made have slots of this distribution, and it is not known to be busy.
    [[nodiscard]] bool is_master(const DistributionId& distribution, const TaskId& task) const;
    /// The task has gone: its slots are free.
    void drop(const TaskId& task);
    /// Forgets the slots of a policy that no longer exists.
    void drop_policy(std::string_view policy);
    /// The number of a distribution, which it has for as long as its policy is not forgotten. No value: no
    /// task has a slot of it.
    [[nodiscard]] std::optional<unsigned> number(const DistributionId& distribution) const;
    /// The CPU time that the task used in its slot of the distribution since it was last weighed, >= 0: it
    /// counts with the mean of that and what it counted before; `one_cpu` until anything is known.
    void weigh(unsigned table, const TaskId& task, Weight weight);
    /// The task has slots of these distributions only: it goes by another thread rule now. Groups stay.
    void drop_others(const TaskId& task, std::span<const unsigned> tables);
    /// The machine, and the work on it that is not a task's: that of interrupts. To give the same again costs
    /// nothing.
    /// `world`: a number that changes with the policies or the machine; with it seats are dealt out anew
    /// where two readers share one while another is free.
    void use(const std::shared_ptr<const CpuLoad>& base, unsigned world = 0);

    [[nodiscard]] const CpuLoad& load() const { return load_; }

    static constexpr Weight idle = one_cpu / 50; ///< a task that uses less takes no slot from others
    /// A task in its slot.
    struct Seat {
        unsigned table; ///< its distribution: an index for distribution()
        unsigned now;   ///< the slot, by its first CPU
        unsigned given; ///< the first one that it was given
        Weight weight = one_cpu;
        bool is_weighed = false;
        bool is_counted = false; ///< among the peers of its slot that are not idle
        bool is_there = false;   ///< among all of them
        unsigned workers = 0;    ///< that it made, in the same distribution: it leaves its slot to them
        bool is_moved = false;   ///< by move(): it stays there, however many others do
        bool is_fresh =
            false; ///< it was a reader until now, or is one since: chosen once more at the next look
        unsigned dealt_in = 0; ///< the world in which it was looked at last
        TaskId family = {};    ///< the parent, else the process
        TaskId master = {};    ///< the parent, if it has a slot here, too, and counts this one as its worker
        CpuSet cpus = {};      ///< those that it has of its slot; empty: it has left it
        std::optional<std::pair<TaskId, unsigned>> numbered = {}; ///< of a pair: its process and number
        CpuSet cpuset = {}; ///< it leaves the task fewer slots than its distribution has; empty: none does
    };
    using Seats = std::unordered_multimap<TaskId, Seat>;
    [[nodiscard]] const Seats& seats() const { return seats_; }
    [[nodiscard]] const DistributionId& distribution(unsigned table) const { return *tables_[table].id; }
    /// The process in whose group the task is; otherwise itself.
    [[nodiscard]] TaskId owner(const TaskId& task) const;
    /// The task changes over from one slot of a distribution to another for good. Nothing happens if it is
    /// not there any more. A slot in another group: it waits there for the process to follow, and keeps it.
    void move(const TaskId& task, unsigned table, unsigned from, const Slot& to);

  private:
    struct Peers {
        unsigned busy = 0, all = 0;
    };
    struct Table {
        const DistributionId* id = nullptr; ///< null: free
        bool is_of_groups = false;          ///< the slots inside a group count, not the group
        CpuLoad::Around own;                ///< what it puts on groups and nodes
        /// By family (0: of all) and slot, how many tasks are there that are not idle, and how many in all.
        std::unordered_map<std::uint64_t, Peers> peers;
        std::size_t seats = 0; ///< it is free again with the last one
    };
    std::size_t assign_again(const SlotRequest& request, Seat& seat);
    void note_master(const SlotRequest& request, Seat& seat);
    static std::uint64_t peer_key(const TaskId& family, unsigned slot) {
        return std::uint64_t{static_cast<std::uint32_t>(family.tid)} << 32U | slot;
    }
    void count_peer(Seat& seat, bool is_busy, bool is_there);
    [[nodiscard]] Peers peers(unsigned table, unsigned slot, const TaskId& family = {}) const;
    [[nodiscard]] std::size_t divided(const SlotRequest& request, Seat& seat, std::size_t chosen);
    unsigned table_of(const DistributionId& distribution);
    void note_number(const SlotRequest& request, Seat& seat);
    [[nodiscard]] std::optional<std::size_t> beside_mate(const SlotRequest& request, unsigned table);
    [[nodiscard]] std::size_t best(const SlotRequest& request, unsigned number);
    [[nodiscard]] Seats::iterator under_another_name(const SlotRequest& request, unsigned table);
    void put(Seat& seat, const Slot* slot); ///< null: nowhere any more
    void change_load(const Seat& seat, Weight from, Weight to);
    Seats::iterator erase(Seats::iterator seat);

    std::shared_ptr<const CpuLoad> base_;
    unsigned world_ = 0;
    CpuLoad load_;
    std::map<DistributionId, unsigned> numbers_;
    std::vector<Table> tables_;
    Seats seats_;
    std::map<std::tuple<unsigned, TaskId, unsigned>, TaskId>
        numbered_;                              ///< by table, process and number: tasks of pairs
    std::unordered_map<TaskId, TaskId> owners_; ///< of tasks in groups that are not their own process
};

} // namespace affinityd::planner

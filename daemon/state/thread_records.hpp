// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state/entry.hpp"
#include "state/pool.hpp"
#include "state/slot_table.hpp"

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::state {

/// The undo records of threads. There may be very many, so that masks and policy names are shared and a
/// thread takes about 100 bytes, however large the machine. All changes and searches are O(1). A record keeps
/// its slot until it is erased, so that a walk over the slots may be interrupted.
class ThreadRecords {
  public:
    [[nodiscard]] std::optional<planner::UndoRecord> find(const TaskId& id) const;
    [[nodiscard]] bool contains(const TaskId& id) const { return slot_of(id) != none; }
    /// Adds the record or replaces it. Names are cut to 15 bytes, as the kernel cuts them.
    void put(const machine::TaskMask& thread, const planner::UndoRecord& record);
    /// False if there was none.
    bool erase(const TaskId& id);

    [[nodiscard]] std::vector<TaskId> of(int pid) const; ///< threads of a process
    [[nodiscard]] bool has_process(int pid) const { return first_of(pid) != none; }
    /// The main thread of a process, if there is a record of it.
    [[nodiscard]] std::optional<TaskId> main_of(int pid) const;
    [[nodiscard]] bool has_policy(const std::string& policy) const { return policies_.contains(policy); }
    /// The process that the record belongs to; no value: there is no record of the thread.
    [[nodiscard]] std::optional<int> process_of(const TaskId& id) const;

    [[nodiscard]] std::size_t size() const { return by_id_.size(); }
    [[nodiscard]] std::size_t slots() const { return slots_.size(); } ///< slots are 0 .. slots() - 1
    [[nodiscard]] bool is_used(std::size_t slot) const { return slots_[slot].id.tid != 0; }
    [[nodiscard]] Entry entry(std::size_t slot) const; ///< of a slot in use
    /// The policy that the record of a slot in use belongs to.
    [[nodiscard]] std::string_view policy(std::size_t slot) const { return policies_[slots_[slot].policy]; }
    /// The next process of a walk from slot 0, each once. No value: the end.
    [[nodiscard]] std::optional<int> next_process(std::size_t& slot) const;

  private:
    static constexpr std::uint32_t none = SlotTable::none;
    struct Slot {
        TaskId id; ///< tid 0: the slot is free
        int pid = 0;
        std::array<char, 16> comm{}; ///< ends in NUL
        std::uint32_t original = 0, asked = 0, granted = 0, policy = 0;
        std::uint32_t before = none,
                      after = none; ///< other threads of the process; `after` links free slots, too
    };
    [[nodiscard]] std::uint32_t slot_of(const TaskId& id) const;
    [[nodiscard]] std::uint32_t first_of(int pid) const;
    [[nodiscard]] planner::UndoRecord record(const Slot& slot) const;
    std::uint32_t insert(const TaskId& id, int pid);
    void release(const Slot& slot);

    std::deque<Slot> slots_; ///< grows without copies and without room to spare
    std::uint32_t free_ = none;
    SlotTable by_id_;
    SlotTable by_process_; ///< the first slot of each process
    Pool<CpuSet> masks_;
    Pool<std::string> policies_;
};

} // namespace affinityd::state

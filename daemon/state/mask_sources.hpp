// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "state/pool.hpp"
#include "state/slot_table.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace affinityd::state {

/// The record that explains a mask which a child inherited: what to put back, and on whose behalf the mask
/// was set.
struct MaskSource {
    CpuSet original;
    std::string policy;
    bool is_kept = false; ///< the mask stays where no policy wants the task: on_stop: keep
    friend bool operator==(const MaskSource&, const MaskSource&) = default;
};

/// Which masks the threads of each process have, or lately had, from us. Children inherit the mask of the
/// thread that creates them, so a process's masks explain those of its children. All searches and changes are
/// O(1) in the number of threads. A mask that no thread has any more is kept for two generations, since a
/// child may be seen late; of these former masks there are at most `most_former`, and the oldest makes room.
class MaskSources {
  public:
    static constexpr std::size_t most_former = 65536;

    /// A thread of process `pid` has the mask from us. Each call is answered by one remove(). `since`: when
    /// it was given, in clock ticks since boot; 0: not known.
    void add(int pid, const CpuSet& mask, const MaskSource& source, std::uint64_t since = 0);
    /// The thread has it no more.
    void remove(int pid, const CpuSet& mask);
    /// A thread had it, and no record says so. `until`: when, in clock ticks since boot; 0: now.
    void add_former(int pid, const CpuSet& mask, const MaskSource& source, std::uint64_t until = 0);

    /// What explains `mask`, compared on online CPUs, in a child of process `pid`. Not const: the index holds
    /// masks as far as CPUs are online, and is made anew when these change.
    /// `born`: when the child was created, in clock ticks since boot; a mask that was a former one by then
    /// was not inherited.
    [[nodiscard]] std::optional<MaskSource> find(int pid, const CpuSet& mask, const CpuSet& online,
                                                 std::uint64_t born = 0);
    /// For how long threads of a process have had a mask, in clock ticks since boot; 0: not known.
    struct Span {
        std::uint64_t since = 0;
        std::uint64_t until = 0; ///< 0 also if some have it now
    };
    [[nodiscard]] Span span_of(int pid, const CpuSet& mask) const;
    /// True if the process has former masks.
    [[nodiscard]] bool has_former(int pid) const { return former_of_.contains(pid); }
    /// These processes have ended: what they had explains no mask of whoever has their numbers now.
    void forget_former(const std::unordered_set<int>& pids);
    /// A generation ends: every child of before it has been seen by now.
    void age();

    [[nodiscard]] std::size_t former() const { return former_; }
    [[nodiscard]] std::size_t size() const { return table_.size(); }

  private:
    static constexpr std::uint32_t none = SlotTable::none;
    struct Slot {
        int pid = 0;
        std::uint32_t mask = 0, original = 0, policy = 0; ///< in the pools
        std::uint32_t hash = 0;
        bool is_kept = false;
        std::uint32_t live = 0;       ///< threads that have the mask; 0: a former one
        std::uint32_t generation = 0; ///< in which it became a former one
        std::uint64_t since = 0;      ///< when the mask was first given, in clock ticks since boot
        std::uint64_t until = 0;      ///< when that was, in clock ticks since boot
        std::uint32_t older = none,
                      younger = none; ///< neighbours among the former ones; `younger` links free slots, too
    };
    [[nodiscard]] std::uint32_t hash_of(int pid, const CpuSet& mask) const;
    [[nodiscard]] std::uint32_t find_slot(int pid, const CpuSet& mask, std::uint32_t hash) const;
    std::uint32_t insert(int pid, const CpuSet& mask, const MaskSource& source, std::uint64_t since = 0);
    void set_source(Slot& slot, const MaskSource& source);
    void erase(std::uint32_t at);
    void link_as_youngest(std::uint32_t at, std::uint64_t until = 0);
    void unlink(std::uint32_t at);
    void drop_expired(std::size_t most);
    void use_online(const CpuSet& online);

    CpuSet online_; ///< as of the last find(); empty before the first
    Pool<CpuSet> masks_;
    Pool<std::string> policies_;
    std::deque<Slot> slots_; ///< grows without copies and without room to spare
    std::uint32_t free_ = none;
    SlotTable table_;
    std::unordered_map<int, std::uint32_t> former_of_; ///< process -> number of its former masks
    std::uint32_t oldest_ = none, youngest_ = none;
    std::size_t former_ = 0;
    std::uint32_t generation_ = 0;
};

} // namespace affinityd::state

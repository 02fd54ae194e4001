// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>

namespace affinityd::accounting {

/// The CPU time of a changing set of processes. When a process ends, its time passes to the parent that
/// waited for it; the ledger looks for it there if the parent is in the set. What a process used between
/// the last look and its end is lost only if its parent is outside the set.
///
/// A look is one survey of the set: begin_look(), see() for each living process, finish_look().
class CpuLedger {
  public:
    /// What the kernel says of one process.
    struct Entry {
        TaskId id;
        int parent = 0;
        double seconds = 0; ///< user and system time since its birth, with that of the children it waited for
    };

    /// `born_after`: clock ticks since boot. Processes that started later count from their birth, older ones
    /// from when they were first seen.
    explicit CpuLedger(std::uint64_t born_after = 0) : born_after_(born_after) {}

    /// Begins a look. A look under way is abandoned; it loses nothing.
    void begin_look();
    /// A process of the set that is alive.
    void see(const Entry& entry);
    /// The last figures of a process that is ending, during a look or between two.
    void note(const Entry& entry);
    /// Settles the time of those that the look did not see, until `out_of_time` says so. True: the look is
    /// finished and total() is up to date.
    [[nodiscard]] bool finish_look(const std::function<bool()>& out_of_time);
    /// Begins again at zero. Processes already known count from what they have used by now.
    void restart(std::uint64_t born_after);

    /// Seconds since the beginning, as of the last finished look; never falls.
    [[nodiscard]] double total() const { return total_; }

  private:
    struct Known {
        Entry entry;
        double before = 0;      ///< used before it counted
        bool is_final = false;  ///< the figures are those at its end, with all children it waited for
        std::uint64_t seen = 0; ///< number of the look that saw it last
        unsigned period = 0;    ///< the restart since which `before` holds
    };
    /// By task id, then start time, so that a sweep can be left and taken up again at a key.
    using Table = std::map<TaskId, Known>;
    struct Sweep {
        std::optional<TaskId> last; ///< examined so far
        bool is_examined = false;   ///< all are
        /// Start time and task id of those that have ended; children come out before their parents.
        std::priority_queue<std::pair<std::uint64_t, int>> ended;
    };
    Known& know(const Entry& entry);
    /// Makes `known` count in the present period.
    void renew(Known& known);
    /// What it adds to the total.
    [[nodiscard]] double part(const Known& known) const;
    Known* parent_of(const Entry& entry);
    Known* payer_of(const Entry& entry);
    void settle(const TaskId& id);
    void examine_next();

    std::uint64_t born_after_;
    Table known_;
    Sweep sweep_;
    std::uint64_t look_ = 1; ///< number of the present look
    unsigned period_ = 0;
    double counted_ = 0; ///< the sum of the parts, and what those left that have ended
    double total_ = 0;
};

} // namespace affinityd::accounting

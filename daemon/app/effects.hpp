// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/passive_cost.hpp"
#include "app/load.hpp"
#include "app/steering.hpp"
#include "app/task_table.hpp"
#include "app/work.hpp"
#include "planner/judgement.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

namespace affinityd::app {

/// Counts the effects of policies on their programs, for those who judge a change. A policy is watched from
/// the first look at it until a minute has gone by without one; nothing is read otherwise.
class Effects {
  public:
    /// References must outlive it.
    Effects(Shared& shared, const TaskTable& tasks, accounting::PassiveCost& costs, const Steering& steering)
        : shared_(shared), tasks_(tasks), costs_(costs), steering_(steering) {}

    /// The growth of the counters since the last look at this policy, as of the last read(). The first look
    /// begins to watch it, and finds zeros.
    [[nodiscard]] planner::Effect look(std::size_t policy);
    /// Reads the counters of all policies that are watched; to be called once a second.
    [[nodiscard]] Slices read();
    [[nodiscard]] bool is_watching() const { return !watched_.empty(); }

  private:
    using Clock = std::chrono::steady_clock;
    /// A counter of the kernel: the growth since it was read last.
    struct Counter {
        std::optional<double> last{};
        double grow(std::optional<double> now);
    };
    struct ThreadCounts {
        Counter waited, moved;
    };
    using Threads = std::unordered_map<TaskId, ThreadCounts>;
    struct Watched {
        planner::Effect growth{}; ///< since the last look
        Clock::time_point looked{};
        Counter seconds{}, cpu_seconds{}, bytes{}, reads{}, local_reads{}, retransmits{};
        Threads threads{};                    ///< those that stand for all
        std::set<std::string> units{};        ///< in whose journal errors count
        std::int64_t journal_since = 0;       ///< microseconds since 1970 (UTC); 0: not yet
        std::future<std::uint64_t> journal{}; ///< a reading under way
        Clock::time_point journal_read{};     ///< when it began
    };
    void count(const std::string& policy, Watched& watched);
    void count_errors(const std::string& policy, Watched& watched);
    [[nodiscard]] std::optional<double> retransmits() const;

    Shared& shared_;
    const TaskTable& tasks_;
    accounting::PassiveCost& costs_;
    const Steering& steering_;
    std::map<std::string, Watched> watched_; ///< by policy
};

} // namespace affinityd::app

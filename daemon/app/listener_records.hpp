// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/gone_listeners.hpp"
#include "app/log.hpp"
#include "app/placed.hpp"
#include "app/releases.hpp"
#include "app/task_table.hpp"
#include "app/unreached_listeners.hpp"
#include "app/world.hpp"
#include "enforcer/executor.hpp"
#include "planner/steering.hpp"
#include "state/journal.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace affinityd::app {

/// Listeners that were told a CPU and have no target now: which are put back, and when a record is dropped.
class ListenerRecords {
  public:
    using Clock = std::chrono::steady_clock;
    /// Servers are reloaded, and their workers settle: what is decided against for so long is put back.
    static constexpr std::chrono::seconds patience{30};
    /// Whoever opens and closes listeners all the time fills no more of the journal.
    static constexpr std::size_t most_of_policy = 4096;
    /// To find out that a listener is gone is a look at whole families: so many in one round.
    static constexpr std::size_t most_gone_in_round = 128;
    /// What is in doubt is looked at again after that.
    static constexpr std::chrono::seconds between_looks{5};

    /// References must outlive it.
    struct Parts {
        const host::Root& root;
        const Current& current;
        const TaskTable& tasks;
        state::Journal& journal;
        enforcer::Enforcer& enforcer;
        enforcer::Executor& executor;
        const Releases& releases;
        Placed& placed;
        Log& log;
    };
    explicit ListenerRecords(const Parts& parts) : parts_(parts) {}

    /// New plans begin.
    void forget_plans();
    void note(const planner::ListenerPlan& plan);
    /// This one is put back in the next round.
    void give_up(const planner::ListenerCpu& subject) { given_up_.insert(subject.cookie); }

    struct Sorted {
        std::vector<planner::Subject> unwanted; ///< to be put back now
        std::vector<planner::Subject> doubtful; ///< of policies that steer
    };
    /// `steers`: the policy of this name does. Targets and undecided ones are in none. Counts those of each
    /// policy.
    [[nodiscard]] Sorted sort(const std::vector<planner::ListenerTarget>& targets,
                              const std::function<bool(const std::string& policy)>& steers);
    /// The policy has so many that no more are made.
    [[nodiscard]] bool is_full(const std::string& policy) const;
    void restore(const planner::Subject& subject);
    /// Puts one back that has been decided against, or whose process has been out of its policy, for a while;
    /// or drops its record if nobody has had it open for a while.
    void settle(const planner::Subject& subject, Clock::time_point now);
    /// All were looked at. When to look again, as some may be put back then; no value: for none of these.
    [[nodiscard]] std::optional<Clock::time_point> end_round();

  private:
    [[nodiscard]] bool has_left(const planner::ListenerCpu& listener, const std::string& policy) const;
    void drop_if_gone(const planner::Subject& subject, Clock::time_point now);

    Parts parts_;
    std::unordered_map<std::uint64_t, bool> decided_; ///< by cookie: against it; false: nothing is known
    std::unordered_set<std::uint64_t> given_up_;
    GoneListeners gone_{std::chrono::minutes(1)};
    GoneListeners doubts_{patience};
    UnreachedListeners unreached_;
    std::map<std::string, std::size_t, std::less<>> counts_; ///< by policy, at the last sort()
    std::size_t rounds_ = 0;
    std::size_t looked_ = 0; ///< in this round, whether they are gone
};

} // namespace affinityd::app

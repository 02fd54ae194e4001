// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "app/kernel_changes.hpp"
#include "app/log.hpp"
#include "app/lost_records.hpp"
#include "app/releases.hpp"
#include "app/world.hpp"
#include "enforcer/executor.hpp"
#include "planner/plan.hpp"
#include "state/journal.hpp"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// The way of queues: interrupts, steering maps and flow tables. Each is read alone, compared with its target, written, and
/// noted as it was granted; a link event does so for the queues of that interface only.
class Queues final : private planner::BackoffLookup {
  public:
    /// References must outlive it.
    struct Parts {
        const host::Root& root;
        const Current& current;
        state::Journal& journal;
        enforcer::Enforcer& enforcer;
        enforcer::Executor& executor;
        const KernelChanges& changes;
        const Releases& releases;
        LostRecords& lost;
        Log& log;
    };
    explicit Queues(const Parts& parts) : parts_(parts) {}

    /// Begins with all queues, or those of one interface; what was under way is dropped, as the new round covers it or the
    /// next pass does.
    void begin();
    void begin(const std::string& nic);
    /// Puts queues right until `out_of_time` says so, then restores those that no policy wants any more. True: all of them.
    bool step(const OutOfTime& out_of_time);

    /// The change that a pass would make to this target now, if any. Nothing is changed.
    [[nodiscard]] std::optional<planner::Action> plan(const planner::QueueTarget& target);
    /// What a target's subject was set to when it was last read or written; no value: it could not be read.
    [[nodiscard]] std::optional<planner::Setting> present(const planner::Subject& subject) const;
    /// Why a subject is not where it should be, for people; "": it is, or it was refused.
    [[nodiscard]] std::string note(const planner::Subject& subject) const;

  private:
    [[nodiscard]] bool is_put_off(const planner::Action& action) const override;
    [[nodiscard]] planner::Planning planning();
    [[nodiscard]] std::optional<planner::Setting> read(const planner::Subject& subject);
    [[nodiscard]] bool is_in_round(const planner::QueueTarget& target) const;
    void put_right(const planner::QueueTarget& target);
    void apply(const planner::Action& action);
    bool restore_unwanted(const OutOfTime& out_of_time);
    [[nodiscard]] bool is_wanted(const planner::Subject& subject) const;

    Parts parts_;
    planner::Assignments none_; ///< queues have no slots to assign
    std::shared_ptr<World> world_; ///< of the round
    std::optional<std::string> nic_; ///< of the round; no value: all
    std::size_t next_ = 0;           ///< target of the round
    std::optional<std::vector<state::Entry>> records_; ///< still to be compared with what is wanted
    std::unordered_map<planner::Subject, planner::Setting> present_;
};

} // namespace affinityd::app

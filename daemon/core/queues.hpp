// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/log.hpp"
#include "core/pass.hpp"
#include "core/shared.hpp"
#include "core/undo.hpp"
#include "core/work.hpp"
#include "enforcer/executor.hpp"
#include "machine/reader.hpp"
#include "planner/plan.hpp"
#include "status/status.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace affinityd::core {

/// The way of queues: interrupts, steering maps and flow tables. Each is read
/// alone, compared with its target, written, and noted as it was granted.
class Queues {
  public:
    /// References must outlive it.
    Queues(Shared& shared, Undo& undo, Placed& placed) : shared_(shared), undo_(undo), placed_(placed) {}

    /// A round over all of them, or those of one interface and of what is under it; what no policy wants any
    /// more is restored. Begins anew where there are other policies or placements meanwhile.
    [[nodiscard]] Slices round(std::optional<std::string> nic = {});
    /// Reads one interface again, alone, and puts its queues right.
    [[nodiscard]] Slices reread(std::string nic);
    /// Looks at the masks of the interrupts under policy, and at nothing else: no kernel event tells that
    /// another program has written one. A glance reads a file per interrupt, so it may come every few
    /// seconds. A mask that had been changed is right again then, and a pass is wanted: the writer may be a
    /// program that only a pass over all processes finds, such as irqbalance.
    [[nodiscard]] Slices glance();
    /// The change that a round would make to restore a subject, if any.
    [[nodiscard]] std::optional<planner::Action> plan_restore(const planner::Subject& subject);

    /// The change that a round would make now, if any. Nothing is changed.
    [[nodiscard]] std::optional<planner::Action> plan(const planner::QueueTarget& target);
    /// A target with what its subject was set to when it was last read or written.
    [[nodiscard]] status::QueueStatus status(const planner::QueueTarget& target) const;
    /// The same with the present setting, which is not remembered: glance() still sees a change.
    [[nodiscard]] status::QueueStatus status_now(const planner::QueueTarget& target) const;
    /// True if interrupts are under policy, and are set.
    [[nodiscard]] bool guards_interrupts() const;
    /// The subjects in the undo journal that no policy wants now, or only released ones; with `nic`, only
    /// those of that interface.
    [[nodiscard]] std::vector<planner::Subject> unwanted(const std::optional<std::string>& nic = {});

    /// True if a policy wants something of the interface, which may have got this name just now. Containers'
    /// interfaces come and go all the time, and say nothing of its interrupts.
    [[nodiscard]] bool concerns(const std::string& nic) const;
    /// Interfaces that were read alone since the start: a reading of the whole machine meanwhile is too old.
    [[nodiscard]] std::uint64_t links_read() const { return links_read_; }

  private:
    void put_right(const planner::QueueTarget& target);
    [[nodiscard]] bool put_right_if_changed(const planner::QueueTarget& target);
    void restore_unwanted(const planner::Subject& subject);
    [[nodiscard]] std::optional<planner::Setting> read(const planner::Subject& subject);
    [[nodiscard]] const planner::QueueTarget& decider(const planner::QueueTarget& target) const;
    [[nodiscard]] bool is_wanted(const planner::QueueTarget& target) const;
    void add_state(const planner::QueueTarget& target, status::QueueStatus& into) const;
    void count_unchanged(const planner::QueueTarget& target, const planner::Setting& present);
    [[nodiscard]] std::optional<planner::Action> plan(const planner::QueueTarget& target,
                                                      const planner::Setting& present);
    void apply(const planner::Action& action);

    Shared& shared_;
    Undo& undo_;
    Placed& placed_;
    planner::Assignments none_; ///< queues have no slots
    std::unordered_map<planner::Subject, planner::Setting> present_;
    std::uint64_t links_read_ = 0;
};

} // namespace affinityd::core

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "enforcer/enforcer.hpp"
#include "planner/action.hpp"
#include "state/journal.hpp"
#include "topology/topology.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace affinityd::app {

/// Carries out one action after the other: written down, done, confirmed. Counts what became of them.
class Executor {
  public:
    Executor(state::Journal& journal, enforcer::Enforcer& enforcer, Log& log)
        : journal_(journal), enforcer_(enforcer), log_(log) {}

    /// `topology` tells what "no preference" is. A refusal is logged once per kind and subject.
    enforcer::Applied run(const planner::Action& action, const topology::Topology& topology);

    /// A task that nobody has seen before and that was born with a mask we gave to its creator: what it goes
    /// back to one day is what its creator goes back to. `creator` is the process it came from (its own, for
    /// a thread).
    void adopt_newborn(const planner::TaskMask& task, const CpuSet& present, int creator,
                       const CpuSet& online);

    /// The record of whoever gave this task the mask it was born with; nothing if it has a past of its own.
    [[nodiscard]] std::optional<planner::Held> inherited(const planner::TaskMask& task, const CpuSet& present,
                                                         int creator, const CpuSet& online) const;
    /// At the end, when there is nothing left to wait for: such a task gets its creator's original at once.
    /// True if it did.
    bool put_back_newborn(const planner::TaskMask& task, const CpuSet& present, const planner::Held& held);

    /// Puts one subject's original back if its mask is still ours; else forgets it. True if it was put back.
    bool restore(const state::Journal::Entry& entry, const CpuSet& online);

    /// True for an interrupt that said it can never move (managed by the kernel).
    [[nodiscard]] bool never_moves(const planner::Subject& subject) const {
        return !permanent_.empty() && permanent_.contains(planner::to_string(subject));
    }

    /// How often each outcome came, by enforcer::Outcome.
    [[nodiscard]] const std::array<std::uint64_t, 16>& counts() const { return counts_; }
    /// The last refusal per subject that is still refused, for status.
    [[nodiscard]] const std::map<std::string, std::string>& refusals() const { return refusals_; }

  private:
    enforcer::Applied failed(const planner::Action& action, enforcer::Applied applied,
                             const std::optional<planner::Held>& before);
    [[nodiscard]] Result<void> take_back(const planner::Action& action, enforcer::Outcome outcome,
                                         const std::optional<planner::Held>& before);
    state::Journal& journal_;
    enforcer::Enforcer& enforcer_;
    Log& log_;
    std::array<std::uint64_t, 16> counts_{};
    std::map<std::string, std::string> refusals_;
    std::map<std::string, enforcer::Outcome> permanent_; ///< interrupts that said they can never move
};

} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/backoff.hpp"
#include "enforcer/enforcer.hpp"
#include "enforcer/notice.hpp"
#include "enforcer/refusals.hpp"
#include "planner/plan.hpp"
#include "state/journal.hpp"
#include "topology/topology.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::enforcer {

/// What became of an action, and what there is to tell of it.
struct Carried {
    Applied applied;
    std::vector<Notice> notices{};
};

/// The CPUs that a task's cgroup lets it have; null: all, or not known. Asked only where it matters.
using CpusetLookup = std::function<const CpuSet*()>;

/// What run() must know besides the action.
struct Circumstances {
    const topology::Topology& topology;
    /// CPUs that may stand in for an interrupt's own when that has no vector left, the nearest first. Asked
    /// only then.
    std::function<std::vector<unsigned>()> others{};
    CpusetLookup cpuset{}; ///< of the task
    /// Told of a change that is written down, before it is made.
    std::function<void(const planner::UndoRecord&)> written_down{};
};

/// Whose masks may have changed without anybody's doing.
struct Expected {
    bool of_tasks = false;
    bool of_queues = false;
    [[nodiscard]] bool holds_for(const machine::Subject& subject) const {
        return std::holds_alternative<machine::TaskMask>(subject) ? of_tasks : of_queues;
    }
};

/// Carries out one action after the other, with backoff: written down in the undo journal, done, read back,
/// confirmed. For tasks, queues and units alike. It does not log. The journal and the enforcer must outlive
/// it.
class Executor final : public planner::BackoffLookup {
  public:
    using Clock = Backoff::Clock;
    Executor(state::Journal& journal, Enforcer& enforcer, std::function<Clock::time_point()> now = Clock::now)
        : journal_(journal), enforcer_(enforcer), now_(std::move(now)) {}

    /// No value: this is not the time for it (is_put_off() was true). A restore is handed to restore().
    std::optional<Carried> run(const planner::Action& action, const Circumstances& circumstances);
    /// True if run() would leave the action for later, or for ever: the subject is fought over, was diverted
    /// lately, or can never move. Never true for a restore.
    [[nodiscard]] bool is_put_off(const planner::Action& action) const override;
    /// CPUs, cpusets or interfaces have just changed, and the kernel and its drivers reset settings then:
    /// until nothing is expected any more, what has to be put right is no fight, and fights do not rest.
    void expect_changes(Expected expected) { expected_ = expected; }
    /// A pass begins: what it is refused, too, is told.
    void begin_pass() { refusals_.begin_pass(); }
    /// Forgets fights, diversions, and which interrupts never move: everything is asked for anew.
    void begin_anew() {
        backoff_.clear();
        refusals_.try_all_again();
    }
    /// Why a subject is not where it should be.
    [[nodiscard]] std::optional<Backoff::Note> note(const machine::Subject& subject) const {
        return backoff_.note(subject, now_());
    }

    /// How often the subject was put right in a row, lately.
    [[nodiscard]] unsigned corrections(const machine::Subject& subject) const {
        return backoff_.corrections(subject);
    }

    /// When a task that was put right lately should be looked at again.
    [[nodiscard]] std::optional<Clock::time_point> next_look(const machine::Subject& subject) const {
        return backoff_.size() == 0 ? std::nullopt : backoff_.next_look(subject, now_());
    }

    /// It stays as it is. Whether a change was made in whose middle a daemon was killed is told by that.
    [[nodiscard]] Result<void> settle(const machine::Subject& subject, const machine::Setting& present,
                                      const CpuSet& online);

    /// Puts the original of a subject back if the subject is still set to what we asked for or were granted,
    /// compared on online CPUs, or if a task's cpuset has only cut that. Outcomes: done, narrowed or pending:
    /// it was put back. foreign or gone: nothing was written. In these cases the record is forgotten. All
    /// else: it could not be put back, and the record stays for a later daemon.
    Carried restore(const machine::Subject& subject, const CpuSet& online, const CpusetLookup& cpuset = {});

    /// What explains the mask that a task without a record was born with: a record of process `creator`, the
    /// one that it came from (its own, for a thread).
    [[nodiscard]] std::optional<state::MaskSource>
    inherited(const machine::TaskMask& task, const CpuSet& present, int creator, const CpuSet& online);
    /// Gives such a task a record, so that it gets back what its creator gets back. A fault: it could not be
    /// written.
    [[nodiscard]] Result<void> record_inherited(const machine::TaskMask& task, const CpuSet& present,
                                                int creator, const CpuSet& online);
    /// Puts such a task back at once, without a record: for the end, when no pass follows.
    Carried put_back_inherited(const machine::TaskMask& task, const CpuSet& present,
                               const state::MaskSource& source);

    /// The subject is gone: drops its record, its refusal and its backoff.
    [[nodiscard]] Result<void> gone(const machine::Subject& subject);
    /// Looks at up to `most` subjects that were refused, and as many that live on without a record, going on
    /// where the last call ended, and drops those that are gone. For the end of a pass: exits may have been
    /// missed.
    void drop_gone(std::size_t most);

    /// Refusals that still hold.
    [[nodiscard]] const Refusals& refusals() const { return refusals_; }
    /// How often each outcome came, by Outcome.
    [[nodiscard]] const std::array<std::uint64_t, 16>& counts() const { return counts_; }

    /// How often something was put right that somebody else had changed, by policy: since the start.
    [[nodiscard]] const std::map<std::string, std::uint64_t, std::less<>>& corrected() const {
        return corrected_;
    }

  private:
    Carried carry_out(const planner::Action& action, const std::optional<planner::UndoRecord>& before,
                      const Circumstances& circumstances);
    Carried restore_present(const machine::Subject& subject, const planner::UndoRecord& record,
                            const machine::Setting& present, const CpuSet& online,
                            const CpusetLookup& cpuset);
    void divert(const planner::Action& action, const Circumstances& circumstances, Carried& carried);
    void note_refusal(const planner::Action& action, Carried& carried);

    state::Journal& journal_;
    Enforcer& enforcer_;
    std::function<Clock::time_point()> now_;
    Expected expected_;
    Backoff backoff_;
    Refusals refusals_;
    state::PastRecords::Cursor past_; ///< up to where drop_gone() has looked
    std::array<std::uint64_t, 16> counts_{};
    std::map<std::string, std::uint64_t, std::less<>> corrected_;
};

} // namespace affinityd::enforcer

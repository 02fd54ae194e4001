// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/enforcer.hpp"
#include "planner/plan.hpp"
#include "state/journal.hpp"
#include "topology/topology.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::enforcer {

/// Something that happened while an action was carried out and that an operator may want to know. This room
/// does not log: core does, and counts by kind.
struct Notice {
    enum class Kind : std::uint8_t {
        refused, ///< the subject could not be set to `to`; told once for each subject and outcome, what may
                 ///< be of the moment with the next pass only
        not_put_back, ///< the original `to` could not be restored; the record stays for a later daemon
        foreign,      ///< another program has changed the subject since, so it keeps `from` and its record is
                      ///< dropped
        corrected,    ///< another program had changed it (to `from`): put right, to `granted`
        fight,        ///< another program keeps changing it (now `from`): left alone for a while
        diverted,     ///< the CPUs `to` have no interrupt vector left: it is on `granted` instead
        journal_failed, ///< the undo journal could not be written, so nothing was changed; see `fault`
        journal_behind, ///< the change was made, and the journal could not be told; see `fault`
    };
    Kind kind = Kind::refused;
    planner::Action action;
    Applied applied;
    std::optional<Error> fault{};
};

/// The outcome of an action, and what there is to tell of it.
struct Carried {
    Applied applied;
    std::vector<Notice> notices{};
};

/// The CPUs that a task's cgroup lets it have; null: all, or not known. Asked only where it matters.
using CpusetLookup = std::function<const CpuSet*()>;

/// The things that run() must know besides the action.
struct Circumstances {
    const topology::Topology& topology;
    /// CPUs that may stand in for an interrupt's own when that has no vector left, the nearest first. Asked
    /// only then.
    std::function<std::vector<unsigned>()> others{};
    CpusetLookup cpuset{};                   ///< of the task
    const state::Descent* descent = nullptr; ///< of a task without a record
};

/// A change that was asked for and not made.
struct Refusal {
    Outcome outcome = Outcome::failed;
    int code = 0;            ///< errno, 0 if there was none
    std::uint64_t since = 0; ///< the pass in which it was first refused, or after which
    bool is_told = false;
};
/// "failed: Input/output error"
[[nodiscard]] std::string to_string(const Refusal& refusal);

/// A subject that is not where it should be, or that was put right lately.
struct Trouble {
    using Clock = std::chrono::steady_clock;
    std::optional<Refusal> refusal; ///< of the last change; no value: it was made
    bool never_moves = false;       ///< an interrupt that its driver manages
    unsigned corrections = 0;       ///< in a row: another program changes it
    Clock::time_point corrected{};
    Clock::time_point rests_until{};                  ///< it is left alone until then
    std::optional<machine::Setting> wanted, diverted; ///< it rests as the CPUs that it was to have are full
};

/// The one writer: owns the undo journal, and knows which subjects make trouble. Carries out one action after
/// the other: writes it down, does it, reads back, confirms. Does not log. The enforcer must outlive it.
///
/// Two writers must not fight over a subject for ever: it is put right five times in a row, then left alone,
/// each time for longer. An interrupt whose CPU had no vector left stays for ten minutes where there was one.
class Executor final : public planner::BackoffLookup {
  public:
    using Clock = Trouble::Clock;
    using Troubles = std::map<machine::Subject, Trouble, state::SubjectOrder>;
    static constexpr std::size_t most_troubles = 4096; ///< tasks of others make room for more
    Executor(state::Journal journal, Enforcer& enforcer, std::function<Clock::time_point()> now = Clock::now)
        : journal_(std::move(journal)), enforcer_(enforcer), now_(std::move(now)) {}

    /// No value: this is not the time for it (is_put_off() was true). A restore is handed to restore().
    std::optional<Carried> run(const planner::Action& action, const Circumstances& circumstances);
    /// True for a subject that is known to be gone for good.
    [[nodiscard]] bool is_gone(const machine::Subject& subject) const;
    /// True if run() would leave the action for later, or for ever: the subject is fought over, was diverted
    /// lately, or can never move. Never true for a restore.
    [[nodiscard]] bool is_put_off(const planner::Action& action) const override;
    /// CPUs, cpusets or interfaces have just changed, and the kernel and its drivers reset settings then:
    /// until the pass that follows has ended, what has to be put right is no fight, and fights do not rest.
    /// `of_tasks`: not of queues only.
    void expect_changes(bool of_tasks) {
        of_queues_.is_announced = true;
        of_tasks_.is_announced |= of_tasks;
    }
    /// A pass begins: what it is refused, too, is told.
    void begin_pass();
    void end_pass();
    /// The end: no pass follows.
    void begin_stop() { of_tasks_ = of_queues_ = {}; }
    /// Masks of tasks may have changed without another program's doing.
    [[nodiscard]] bool tasks_may_have_changed() const { return of_tasks_.is_expected(); }
    /// They may, and no pass has begun since.
    [[nodiscard]] bool awaits_pass() const { return of_tasks_.is_announced; }
    /// Forgets fights, diversions and refusals: everything is asked for anew, and told again.
    void begin_anew() { troubles_.clear(), full_ = {}; }
    [[nodiscard]] const Troubles& troubles() const { return troubles_; }
    /// Null: it makes none.
    [[nodiscard]] const Trouble* trouble(const machine::Subject& subject) const;
    /// The same while it is left alone.
    [[nodiscard]] const Trouble* rest(const machine::Subject& subject) const;
    /// When a task that was put right should be looked at again: 1, 2, 4, 8 s after that, or at the end of a
    /// rest. No value: it holds, or was never put right.
    [[nodiscard]] std::optional<Clock::time_point> next_look(const machine::Subject& subject) const;

    /// Restores the original of a subject if that is set to a mask of ours, compared on online CPUs, or if a
    /// task's cpuset has only cut it. Outcomes: done, narrowed or pending: it was restored. foreign or gone:
    /// nothing was written. In these cases the record is in force no more. All else: it could not be
    /// restored, and the record stays for a later daemon. `record`: null: there is nothing to restore.
    Carried restore(const machine::Subject& subject, const planner::UndoPointer& record, const CpuSet& online,
                    const CpusetLookup& cpuset = {});

    /// Before a change of a subject, by another than run(): its record says what it is about to be set to.
    /// `present`: what it is set to now. An Error: the change must not be made.
    [[nodiscard]] Result<planner::UndoPointer> remember(const planner::Action& action,
                                                        const machine::Setting& original,
                                                        const machine::Setting& present,
                                                        const state::Descent* descent = nullptr);
    /// After it.
    [[nodiscard]] Result<void> confirm(const machine::Subject& subject, const planner::UndoRecord& record,
                                       const machine::Setting& granted);
    /// The change was not made: the record is `before` again.
    [[nodiscard]] Result<void> take_back(const machine::Subject& subject, const planner::UndoPointer& before);
    /// The subject lives on without a record in force: kept, or back.
    [[nodiscard]] Result<void> part(const machine::Subject& subject, state::Standing standing) {
        return journal_.part(subject, standing, enforcer_.ticks());
    }
    /// The subject is gone: drops its record and its trouble.
    [[nodiscard]] Result<void> gone(const machine::Subject& subject);
    /// Looks at up to `most` subjects that make trouble, and as many that live on without a record in force,
    /// going on where the last call ended, and drops those that are gone. For the end of a pass: exits may
    /// have been missed.
    void drop_gone(std::size_t most);
    [[nodiscard]] state::Journal& journal() { return journal_; }
    [[nodiscard]] const state::Journal& journal() const { return journal_; }

    /// How often each outcome came, by Outcome.
    [[nodiscard]] const std::array<std::uint64_t, 16>& counts() const { return counts_; }
    /// How often something was put right that another program had changed, by policy: since the start.
    [[nodiscard]] const std::map<std::string, std::uint64_t, std::less<>>& corrected() const {
        return corrected_;
    }

  private:
    Carried carry_out(const planner::Action& action, const Circumstances& circumstances);
    [[nodiscard]] Result<void> close(const planner::Action& action, const Applied& applied,
                                     const planner::UndoPointer& written);
    void divert(const planner::Action& action, const Circumstances& circumstances, Carried& carried);
    [[nodiscard]] Trouble& trouble_of(const machine::Subject& subject);
    void note_correction(const planner::Action& action, Carried& carried);
    void note_refusal(const planner::Action& action, Carried& carried);

    state::Journal journal_;
    Enforcer& enforcer_;
    std::function<Clock::time_point()> now_;
    struct Changes {
        bool is_announced = false; ///< since the last pass began
        bool is_in_pass = false;   ///< before the pass that is under way
        [[nodiscard]] bool is_expected() const { return is_announced || is_in_pass; }
    };
    [[nodiscard]] bool is_expected(const machine::Subject& subject) const {
        return (std::holds_alternative<machine::TaskMask>(subject) ? of_tasks_ : of_queues_).is_expected();
    }
    Changes of_tasks_, of_queues_;
    Troubles troubles_;
    CpuSet full_; ///< CPUs that had no vector left: until then, no interrupt asks for one there
    Clock::time_point full_until_{};
    std::uint64_t passes_ = 0;
    state::Journal::Cursor troubled_, past_; ///< up to where drop_gone() has looked
    std::array<std::uint64_t, 16> counts_{};
    std::map<std::string, std::uint64_t, std::less<>> corrected_;
};

} // namespace affinityd::enforcer

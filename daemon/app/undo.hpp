// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "app/work.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/facts.hpp"
#include "inventory/process_scan.hpp"
#include "status/changes.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace affinityd::app {

/// Subjects without a record in force whose setting is from us all the same.
///
/// A task has a mask of ours, and is to get the original of the record that explains it, if its creator has a
/// record with exactly that mask and had it when the task was born. In the first pass, and at the end for
/// tasks that no event has announced, the same holds for one whose parent has ended and a record of its
/// control group or session. Any other task with a mask of ours is left alone and counted in one line.
///
/// After damage of the journal, subjects where policies want them are assumed ours, with the kernel's default
/// as their original, until a pass has looked at all.
class Undo {
  public:
    /// `shared` must outlive it.
    explicit Undo(Shared& shared) : shared_(shared) {}

    /// Marks the records of tasks whose processes ended while no daemon ran: a number may be another
    /// process's by now. They explain children until the first pass has ended.
    void note_dead();
    void begin_pass();
    /// All tasks have been looked at.
    void end_tasks();
    void end_pass();
    /// The daemon ends, and handles no events any more.
    void begin_stop();

    /// Control group and session of a process; those of the last one are remembered.
    [[nodiscard]] const state::Descent& descent_of(const TaskId& process);
    /// True for a process that no policy wants and that may have been left behind with one of our masks.
    [[nodiscard]] bool may_be_left(const inventory::ProcessScan& scan, const CpuSet& online) const;
    /// The record that explains the mask of a task without one. `creator`: the process whose thread made it.
    /// Null: none does.
    [[nodiscard]] const state::Record* explain(const machine::TaskMask& task, const CpuSet& present,
                                               int creator, const CpuSet& online) const;
    /// A task without a record, and without an explanation.
    void leave(const machine::TaskMask& task, const CpuSet& present, const CpuSet& online);

    /// The record that a subject without one in force ought to have, as it was kept, or restored a while ago,
    /// and is set to a value of ours. `policy`: that wants it now. Null: none.
    [[nodiscard]] planner::UndoPointer recall(const machine::Subject& subject,
                                              const machine::Setting& present, const std::string& policy,
                                              const CpuSet& online) const;
    /// Gives an interrupt, steering map, flow table or unit that record, and follows its record to a new
    /// name.
    void take_up(const machine::Subject& subject, const machine::Setting& present, const std::string& policy,
                 const CpuSet& online);
    /// The setting of a subject with a record is the kernel's doing, and ours: the record says so.
    void follow_kernel(const machine::Subject& subject, const machine::Setting& present,
                       const std::string& policy);
    [[nodiscard]] bool searching() const { return shared_.journal().damaged(); }
    /// A subject that is where its policy wants it.
    void assume_ours(const machine::Subject& subject, const machine::Setting& present,
                     const std::string& policy, const topology::Topology& topology);

  private:
    [[nodiscard]] bool is_looked_for(const CpuSet& mask, const CpuSet& online, std::uint64_t born) const;
    [[nodiscard]] bool has_lost_its_parent(const inventory::ProcessScan& scan) const;
    [[nodiscard]] state::Descent read_descent(const TaskId& process) const;

    Shared& shared_;
    bool is_looking_ = true;       ///< for tasks that were left behind
    std::uint64_t born_from_ = 0;  ///< those that are looked for; clock ticks since boot
    std::uint64_t pass_began_ = 0; ///< clock ticks since boot
    TaskId last_;                  ///< whose descent that is
    state::Descent descent_;
    std::size_t left_ = 0;   ///< tasks with a mask of ours that nothing explains
    std::string first_left_; ///< some of them
    std::size_t assumed_ = 0;
    bool all_written_ = true; ///< of those that the pass has come to
};

/// Restores the originals of tasks and queues, in slices: after a release, and at the end.
class Restorer final : public Job {
  public:
    enum class Choice {
        restore,
        keep, ///< it stays as it is: on_stop: keep
        skip, ///< it stays under its policy
    };
    /// Decides about a record's subject.
    using Choose = std::function<Choice(const state::Entry& entry)>;
    /// Called at the end with the counts of subjects restored and not restored.
    using Done = std::function<void(status::Changes changes)>;

    /// References must outlive it. `with_kept`: also of what was kept before.
    Restorer(Shared& shared, inventory::FactSources& sources, CpuSet online, Choose choose, Done done,
             bool with_kept = false)
        : shared_(shared), sources_(sources), online_(std::move(online)), choose_(std::move(choose)),
          done_(std::move(done)), with_kept_(with_kept) {}

    bool step(const OutOfTime& out_of_time) override;

  private:
    void restore(const state::Entry& entry);
    Shared& shared_;
    inventory::FactSources& sources_;
    CpuSet online_;
    Choose choose_;
    Done done_;
    state::Journal::Cursor cursor_{}, kept_cursor_{};
    status::Changes changes_;
    std::size_t units_ = 0; ///< that are left to app::Units
    bool is_begun_ = false;
    bool with_kept_; ///< and some of it is still to be taken up
};

/// At the end: tasks that inherited one of our masks, and that no event has announced yet, get what their
/// creators got back, also if these have ended since. Children of such tasks may have inherited it too, so
/// the processes are gone through until none is left.
class OrphanRestorer final : public Job {
  public:
    /// True if a policy's masks stay when the daemon stops.
    using Keeps = std::function<bool(const std::string& policy)>;
    /// References must outlive it.
    OrphanRestorer(Shared& shared, Undo& undo, CpuSet online, Keeps keeps)
        : shared_(shared), undo_(undo), online_(std::move(online)), keeps_(std::move(keeps)) {}

    bool step(const OutOfTime& out_of_time) override;

  private:
    [[nodiscard]] bool begin_round();
    void begin_process(int pid);
    void restore(const inventory::Thread& thread);

    Shared& shared_;
    Undo& undo_;
    CpuSet online_;
    Keeps keeps_;
    std::optional<inventory::PidStream> pids_;   ///< of the round
    std::optional<inventory::ProcessScan> scan_; ///< of the process that is looked at now
    unsigned rounds_ = 0;
    unsigned empty_rounds_ = 0; ///< in a row: a child may come into the list after the first of them
    bool is_empty_ = false;     ///< this round has restored none
};

} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/shared.hpp"
#include "inventory/process_scan.hpp"

#include <cstdint>
#include <string>

namespace affinityd::core {

/// Subjects without a record in force whose setting is from us all the same.
///
/// A task has a mask of ours, and is to get the original of the record that explains it, if its creator has a
/// record with exactly that mask and had it when the task was born. In the first pass, and at the end for
/// tasks that no event has announced, the same holds for one whose parent has ended and a record of its
/// control group or session. Any other task with a mask of ours is left alone.
///
/// After damage of the journal, subjects where policies want them are assumed ours, with the kernel's default
/// as their original, until a pass has looked at all.
class Undo {
  public:
    /// `shared` must outlive it.
    explicit Undo(Shared& shared) : shared_(shared) {}

    void begin_pass();
    /// Processes that have ended while no daemon ran are noted, before tasks are looked at: a task that has
    /// lost its parent is more likely a child of theirs than of others.
    [[nodiscard]] Slices note_ended();
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
    std::size_t assumed_ = 0;
    bool all_written_ = true; ///< of those that the pass has come to
};

} // namespace affinityd::core

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "enforcer/executor.hpp"
#include "inventory/process_scan.hpp"

#include <cstdint>
#include <string>

namespace affinityd::host {
class Root;
}

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
    /// References must outlive it.
    Undo(const host::Root& root, enforcer::Executor& executor, bool acts, Log& log);

    /// Marks the records of tasks whose processes ended while no daemon ran: a number may be another
    /// process's by now. They explain children until the first pass has ended.
    void note_dead();
    void begin_pass();
    /// All tasks have been looked at.
    void end_tasks();
    void end_pass();
    /// The daemon ends, and handles no events any more.
    void begin_stop();

    /// Where a process comes from; that of the last one is remembered.
    [[nodiscard]] const state::Descent& descent_of(const TaskId& process);
    /// True for a process that no policy wants and that may have been left behind with one of our masks.
    [[nodiscard]] bool may_be_left(const inventory::ProcessScan& scan, const CpuSet& online) const;
    /// The record that explains the mask of a task without one. `creator`: the process whose thread made it.
    /// Null: none does.
    struct Source {
        const state::Record* record = nullptr;
        bool is_of_orphan = false;
    };
    [[nodiscard]] Source explain(const machine::TaskMask& task, const CpuSet& present, int creator,
                                 const CpuSet& online) const;
    /// A task got a record that explain() has found.
    void take_in(const machine::TaskMask& task) { add(taken_in_, task); }
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
    [[nodiscard]] bool searching() const { return executor_.journal().damaged(); }
    /// A subject that is where its policy wants it.
    void assume_ours(const machine::Subject& subject, const machine::Setting& present,
                     const std::string& policy, const topology::Topology& topology);

    /// Logs that the journal could not be written.
    bool report(const auto& written) {
        if (!written) log_.error(written.error().to_string());
        return written.has_value();
    }

  private:
    struct Tasks {
        std::size_t count = 0;
        std::string first; ///< some of them
    };
    static void add(Tasks& tasks, const machine::TaskMask& task);
    [[nodiscard]] bool is_looked_for(const CpuSet& mask, const CpuSet& online, std::uint64_t born) const;
    [[nodiscard]] bool has_lost_its_parent(const inventory::ProcessScan& scan) const;
    [[nodiscard]] state::Descent read_descent(const TaskId& process) const;
    [[nodiscard]] const state::Record* explain_orphan(const machine::TaskMask& task, const CpuSet& present,
                                                      const CpuSet& online) const;
    const host::Root& root_;
    enforcer::Executor& executor_;
    bool acts_;
    Log& log_;
    bool is_looking_ = true;       ///< for tasks that were left behind
    std::uint64_t born_from_ = 0;  ///< those that are looked for; clock ticks since boot
    std::uint64_t pass_began_ = 0; ///< clock ticks since boot
    TaskId last_;                  ///< whose descent that is
    state::Descent descent_;
    Tasks taken_in_; ///< get back what their parents had
    Tasks left_;     ///< nothing is known of them
    std::size_t assumed_ = 0;
    bool all_written_ = true; ///< of those that the pass has come to
};

} // namespace affinityd::app

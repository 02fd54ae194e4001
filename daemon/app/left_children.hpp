// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "app/task_table.hpp"
#include "enforcer/enforcer.hpp"
#include "inventory/process_scan.hpp"
#include "state/journal.hpp"

#include <optional>
#include <string>

namespace affinityd::host {
class Root;
}

namespace affinityd::app {

/// Children whose parents were killed while no daemon ran have a mask of ours, and nobody is left whose
/// record would explain it. The undo journal remembers which masks were given out since boot, and when. In
/// the first pass, a task without a record is taken for such a child if it has exactly one of these masks,
/// was born after that was given, has lost its parent or has one with a record, and is of the control group
/// or the session of the process that had the mask. Of others with such a mask nothing is known; they are
/// told. At the end the same holds for children whose birth no event has announced any more.
class LeftChildren {
  public:
    LeftChildren(const host::Root& root, state::Journal& journal, const enforcer::Enforcer& enforcer,
                 Log& log)
        : root_(root), journal_(journal), enforcer_(enforcer), log_(log),
          is_looking_(journal.contents().given().size() > 0) {}

    [[nodiscard]] std::uint64_t now() const { return enforcer_.ticks(); }
    /// Threads of the process have been given the masks of the record, `since` at the earliest.
    void note(const TaskId& process, const planner::UndoRecord& record, std::uint64_t since);
    /// Threads of a process under policy are about to get them, if they are still there.
    void note_coming(const KnownProcess& process, const planner::UndoRecord& record, std::uint64_t since);

    /// True for a process that no policy wants and that may be such a child.
    [[nodiscard]] bool may_be_one(const inventory::ProcessScan& scan, const CpuSet& online) const {
        return is_looking_ && has_given_mask(scan, online);
    }
    /// What explains the mask of a task that nothing else explains.
    [[nodiscard]] std::optional<state::MaskSource> explain(const machine::TaskMask& task,
                                                           const CpuSet& present, const CpuSet& online) const;
    /// A task that explain() has explained has a record now.
    void take_in(const machine::TaskMask& task) { add(taken_in_, task); }
    /// A task without a record, and without an explanation.
    void leave(const machine::TaskMask& task, const CpuSet& present, const CpuSet& online);
    /// A pass is over; after the first, whoever has been left behind was found.
    void end_pass();
    /// The daemon ends, and handles no events any more.
    void begin_stop();

  private:
    [[nodiscard]] bool has_given_mask(const inventory::ProcessScan& scan, const CpuSet& online) const;
    /// A task that was born then has the mask: whether it may be one of ours.
    [[nodiscard]] bool may_be_given(const CpuSet& mask, const CpuSet& online, std::uint64_t born) const;
    [[nodiscard]] state::Descent descent_of(const TaskId& process) const;
    void note_noted(const planner::UndoRecord& record, std::uint64_t since);
    [[nodiscard]] bool has_lost_its_parent(const inventory::ProcessScan& scan) const;
    [[nodiscard]] bool is_of_a_policys_process(const inventory::ProcessScan& scan) const;
    [[nodiscard]] bool is_of_an_orphan(const inventory::ProcessScan& scan, const CpuSet& online) const;
    const host::Root& root_;
    state::Journal& journal_;
    const enforcer::Enforcer& enforcer_;
    Log& log_;
    bool is_looking_;
    std::uint64_t born_from_ = 0; ///< those that are looked for; clock ticks since boot
    struct Noted {                ///< the last process, of which there may be many threads
        TaskId process;
        state::Descent descent;
    } noted_;
    struct Tasks {
        std::size_t count = 0;
        std::string first; ///< some of them
    };
    static void add(Tasks& tasks, const machine::TaskMask& task);
    Tasks taken_in_; ///< get back what their parents had
    Tasks left_;     ///< nothing is known of them
};

} // namespace affinityd::app

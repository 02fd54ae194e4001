// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "planner/undo.hpp"
#include "state/entry.hpp"
#include "state/journal_file.hpp"
#include "state/mask_sources.hpp"
#include "state/queue_records.hpp"
#include "state/settled_tasks.hpp"
#include "state/thread_records.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::state {

/// The undo journal: what was changed and what it was before, on disk before the change. It
/// lives under the runtime directory, because affinity does not outlive a boot.
///
/// It is a text file with one record a line. The last record of a subject is its state. When most of the file
/// is history, the file is rewritten beside itself, a few records with each line that is appended, and
/// renamed.
class Journal final : public planner::UndoLookup {
  public:
    /// Opens or creates the file and reads what an earlier daemon left in it. If the disk is full, the old
    /// file stays in use. With "" nothing is written anywhere (dry run): the journal is in memory only.
    static Result<Journal> open(const std::string& path);

    [[nodiscard]] std::optional<planner::UndoRecord> find(const machine::Subject& subject) const override;
    /// The same without a copy.
    [[nodiscard]] bool contains(const machine::Subject& subject) const;

    /// Before a change: keeps the first original, notes what is asked for. If this fails, the change must not
    /// be made. `since`: now, in clock ticks since boot; 0: the subject may have had that for longer.
    [[nodiscard]] Result<void> remember(const machine::Subject& subject, const machine::Setting& original,
                                        const machine::Setting& asked, const std::string& policy,
                                        std::uint64_t since = 0);
    /// After it: what the kernel made of it.
    [[nodiscard]] Result<void> confirm(const machine::Subject& subject, const machine::Setting& granted);
    /// The subject was put back, is no longer ours, or is gone.
    [[nodiscard]] Result<void> forget(const machine::Subject& subject);
    /// The same of one that lives on: the mask that a task has from now on is its own, and not inherited.
    [[nodiscard]] Result<void> settle(const machine::Subject& subject);
    [[nodiscard]] bool is_settled(const TaskId& task) const { return settled_.contains(task); }

    /// A place in a walk over all records. The journal may change between two steps: what is there during the
    /// whole walk is met once; what comes or goes meanwhile may be missed.
    struct Cursor {
        std::size_t thread = 0;
        std::size_t queue = 0;
    };
    /// The next record, tasks first; with `policy` only records on its behalf. No value: the end.
    [[nodiscard]] std::optional<Entry> next(Cursor& cursor,
                                            std::optional<std::string_view> policy = {}) const;
    /// The next process with threads in the journal. No value: the end.
    [[nodiscard]] std::optional<int> next_process(Cursor& cursor) const;
    /// The threads of one process that are in the journal, in O(their number).
    [[nodiscard]] std::vector<TaskId> threads(int pid) const { return threads_.of(pid); }
    /// Everything but tasks: interrupts, steering maps, flow tables, units. With `device`, only what belongs
    /// to that device.
    [[nodiscard]] std::vector<Entry> queues(std::optional<std::string_view> device = {}) const;
    [[nodiscard]] std::size_t size() const { return threads_.size() + queues_.size(); }

    /// What explains a mask that a child of process `creator` was born with: the record of a thread there
    /// that has, or had when the child was born, the mask from us. `born`: clock ticks since boot; 0: not
    /// known.
    [[nodiscard]] std::optional<MaskSource> find_mask_source(int creator, const CpuSet& mask,
                                                             const CpuSet& online, std::uint64_t born = 0);
    /// False if neither process ever passed on a mask that we set, so that find_mask_source need not be
    /// asked.
    [[nodiscard]] bool is_mask_source(int pid, int parent) const;
    /// A task of process `pid` had this mask from us and has it no more; no record says so.
    void add_mask_source(int pid, const CpuSet& mask, const MaskSource& source) {
        sources_.add_former(pid, mask, source);
    }
    /// A pass has ended: masks that nobody has since before the last call are forgotten.
    void age_mask_sources() {
        sources_.age();
        settled_.age();
    }

    /// True if lines of the file were lost, until mended() has succeeded, possibly in a later daemon:
    /// subjects without a record may be ours.
    [[nodiscard]] bool damaged() const { return damaged_; }
    /// Subjects in place without a record have been assumed ours, and are in the journal now.
    [[nodiscard]] Result<void> mended();

  private:
    explicit Journal(const std::string& path) : file_(path) {}
    void replay(std::string_view text);
    /// `before`: its record until now.
    void put(const machine::Subject& subject, planner::UndoRecord record,
             const std::optional<planner::UndoRecord>& before, std::uint64_t since = 0);
    void erase(const machine::Subject& subject);
    [[nodiscard]] Result<void> append(const std::string& line);
    void go_on_compacting();

    JournalFile file_;
    ThreadRecords threads_;
    QueueRecords queues_;
    MaskSources sources_;
    SettledTasks settled_;
    Cursor compacted_; ///< up to where the rewritten file has the records
    bool damaged_ = false;
};

} // namespace affinityd::state

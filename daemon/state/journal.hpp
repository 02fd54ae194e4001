// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"
#include "planner/held.hpp"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace affinityd::state {

/// The undo journal: what was changed and what it was before, on disk before the change (DESIGN, rule 4). It
/// lives under the runtime directory, because affinity does not outlive a boot.
///
/// A text file of one record a line, appended with one write(2) each, every line with a checksum: whatever a
/// crash leaves, the lines before it count and a torn one does not. The last record of a subject is its
/// state. When most of the file is history it is rewritten beside itself and renamed. No fsync: the file need
/// only survive the daemon, not the machine.
class Journal final : public planner::Memory {
  public:
    /// Opens or creates the file and reads what an earlier daemon left in it; where the disk is full, that
    /// goes on being used. With "" nothing is written anywhere (dry run): the journal is memory only.
    static Result<Journal> open(const std::string& path);

    /// What another daemon's journal says, in memory only: nothing of it is changed.
    static Result<Journal> read(const std::string& path);

    [[nodiscard]] const planner::Held* find(const planner::Subject& subject) const override;

    /// Before a change: keeps the first original, notes what is asked for. If this fails, the change must not
    /// be made.
    [[nodiscard]] Result<void> remember(const planner::Subject& subject, const CpuSet& original,
                                        const CpuSet& asked, const std::string& policy);
    /// After it: what the kernel made of it.
    [[nodiscard]] Result<void> confirm(const planner::Subject& subject, const CpuSet& granted);
    /// Put back, or no longer ours, or gone.
    [[nodiscard]] Result<void> forget(const planner::Subject& subject);

    struct Entry {
        planner::Subject subject;
        planner::Held held;
    };
    /// All entries, tasks first. A copy: the caller may change the journal while it goes through them.
    [[nodiscard]] std::vector<Entry> entries() const;
    /// Those that are no tasks: a few, however many tasks there are. A copy, too.
    [[nodiscard]] std::vector<Entry> queues() const;
    /// Processes for which `wanted` is true, and those of their threads that are in the journal.
    [[nodiscard]] std::vector<std::pair<int, std::vector<TaskId>>>
    threads(const std::function<bool(int)>& wanted) const;
    /// The same of one process; valid until the next change of the journal.
    [[nodiscard]] std::span<const TaskId> threads(int pid) const;
    /// True if some thread of the process is in the journal.
    [[nodiscard]] bool holds_process(int pid) const { return threads_of_.contains(pid); }
    /// What a task is born with is its creator's mask, and that may be ours: the record of a thread of
    /// process `creator` that has, or lately had, this mask from us. nullptr: none. Valid until the next
    /// change of the journal.
    [[nodiscard]] const planner::Held* find_giver(int creator, const CpuSet& mask,
                                                  const CpuSet& online) const;
    /// False if neither process ever gave a mask of ours on: find_giver needs not be asked.
    [[nodiscard]] bool is_giver(int pid, int parent) const;
    /// A task of the process had this from us and has it no more.
    void remember_giver(int pid, const planner::Held& held);
    /// Forgets givers of before the last call: who they created has been seen by now.
    void age_givers();
    [[nodiscard]] std::size_t size() const { return tasks_.size() + queues_.size(); }
    /// True if lines of it were lost, until mended() has succeeded, be it in a later daemon: subjects may be
    /// ours without being in it.
    [[nodiscard]] bool damaged() const { return damaged_; }
    [[nodiscard]] Result<void> mended();
    /// Lines that were torn or foreign when the file was read.
    [[nodiscard]] std::size_t unreadable_lines() const { return unreadable_; }

  private:
    explicit Journal(std::string path) : path_(std::move(path)) {}
    /// An entry of a task without what its key says already: there are many.
    struct Task {
        int pid = 0;
        std::string comm;
        planner::Held held;
    };
    [[nodiscard]] planner::Held* held_of(const planner::Subject& subject);
    planner::Held& insert(const planner::Subject& subject);
    void erase(const planner::Subject& subject);
    void replay(std::string_view text);
    [[nodiscard]] Result<void> append(const std::string& line);
    [[nodiscard]] Result<void> compact();
    void use_as_it_is(std::string_view text);

    std::string path_;
    host::Fd file_;
    std::unordered_map<TaskId, Task> tasks_;
    std::unordered_map<int, std::vector<TaskId>>
        threads_of_;                      ///< process -> its threads in tasks_; never empty
    std::map<std::string, Entry> queues_; ///< by identity text
    using Givers = std::unordered_map<int, std::vector<planner::Held>>;
    Givers givers_, older_givers_; ///< process -> what tasks of it had
    std::size_t lines_ = 0;
    std::size_t unreadable_ = 0;
    bool damaged_ = false;
    bool torn_ = false; ///< the last write ended inside a line
};

} // namespace affinityd::state

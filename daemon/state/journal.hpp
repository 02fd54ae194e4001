// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"
#include "planner/action.hpp"
#include "state/record.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace affinityd::state {

/// The undo journal: one record for each subject that was changed, on disk before the change. The journal
/// lives under the runtime directory, because affinity does not outlive a boot: a text file to which each
/// change of a record appends a line, and a second one that confirms it; the last line of a subject counts.
/// Each line is one write(2), and no fsync: the file need only survive the daemon, not the machine. When most
/// of it is history, a pass writes it anew beside the file, and puts that in its place when it is whole.
class Journal final : public planner::UndoLookup {
  public:
    /// Opens or creates the file and reads what an earlier daemon left in it. If the disk is full, the old
    /// file stays in use. With "" nothing is written (dry run): the journal is in memory only.
    static Result<Journal> open(const std::string& path);
    Journal(Journal&&) noexcept = default;
    Journal& operator=(Journal&&) noexcept = default;
    ~Journal() override { give_up_rewrite(); }

    /// The record in force, which stays as it is when the journal changes; null: there is none.
    [[nodiscard]] planner::UndoPointer find(const machine::Subject& subject) const override;
    [[nodiscard]] bool contains(const machine::Subject& subject) const { return held_.contains(subject); }
    /// The same with the name that the subject had then.
    [[nodiscard]] std::optional<Entry> find_entry(const machine::Subject& subject) const;
    /// The record of a subject that has none in force: kept, back or gone. Null: there is none.
    [[nodiscard]] const Record* find_past(const machine::Subject& subject) const;
    /// The record in force, of an interrupt that the subject's device has under the same number and another
    /// label, as after an interface was renamed. No value: there is none.
    [[nodiscard]] std::optional<Entry> find_at_number(const machine::Subject& subject) const;

    /// Gives the subject this record, or replaces the one it has, with the subject's newest name. `descent`:
    /// null: as it is. `since`: of a record that is new. An Error: nothing has changed.
    [[nodiscard]] Result<planner::UndoPointer> put(const machine::Subject& subject, planner::UndoRecord undo,
                                                   const Descent* descent = nullptr, std::uint64_t since = 0);
    /// The record is in force no more: the subject is kept, or it is a task that lives on (back) or has ended
    /// (gone), at `until` in clock ticks since boot. Besides tasks, only those that are kept stay
    /// known. An Error: the file does not say so.
    [[nodiscard]] Result<void> part(const machine::Subject& subject, Standing standing,
                                    std::uint64_t until = 0);
    /// The subject was not changed after all.
    [[nodiscard]] Result<void> drop(const machine::Subject& subject);
    /// The record of `from` is that of `to`, whatever that had: a thread that runs another program is the
    /// main thread from then on.
    [[nodiscard]] Result<void> rename(const machine::Subject& from, const machine::Subject& to);

    using Records = std::map<machine::Subject, Record, SubjectOrder>;
    /// A place in a walk. Records may change between two steps: those that are there all the time are met
    /// once.
    using Cursor = std::optional<machine::Subject>; ///< the last one that was met
    /// The next record in force, tasks first. No value: the end.
    [[nodiscard]] std::optional<Entry> next(Cursor& cursor) const;
    /// The next one that is not in force.
    [[nodiscard]] const Records::value_type* next_past(Cursor& cursor) const;
    /// Everything but tasks: interrupts, steering maps, flow tables, units. With `device`, only what belongs
    /// to that device.
    [[nodiscard]] std::vector<Entry> queues(std::optional<std::string_view> device = {}) const;
    [[nodiscard]] std::size_t size() const { return held_.size(); }
    /// Threads of the process with a record in force, ascending.
    [[nodiscard]] std::vector<TaskId> threads(int pid) const;
    /// The next process, in ascending order, of which threads have a record in force; 0: the end.
    [[nodiscard]] int next_process(int pid) const;

    /// True if a task of the process ever had a mask from us, as far as is known.
    [[nodiscard]] bool has_process(int pid) const;
    /// True if the mask is one of ours, of any task; compared on online CPUs.
    [[nodiscard]] bool is_mask_of_ours(const CpuSet& mask, const CpuSet& online) const;
    /// The record of a thread of process `creator` that explains the mask of a task, born then. Null: none
    /// does.
    [[nodiscard]] const Record* explain(int creator, const CpuSet& mask, const CpuSet& online,
                                        std::uint64_t born) const;
    /// The same by the control group or the session, of a task whose creator has ended. Records of those that
    /// have count before others. Null, too, if the mask was the own one of such a task, so may be its
    /// child's.
    [[nodiscard]] const Record* explain(const Descent& descent, const CpuSet& mask, const CpuSet& online,
                                        std::uint64_t born) const;
    /// Forgets what has gone before `until`: all its children have been looked at.
    void drop_gone(std::uint64_t until);

    /// True if lines of the file were lost, until mended() has succeeded, possibly in a later daemon:
    /// subjects without a record may be ours.
    [[nodiscard]] bool damaged() const { return damaged_; }
    [[nodiscard]] Result<void> mended();
    /// Faults that were found when the file was opened, or with its folder later, for a person; and last, as
    /// long as that is so, why it is gone and cannot be written anew: until it can, nothing is written down.
    [[nodiscard]] std::vector<Error> faults() const;
    /// Writes the file anew if it was removed or cut, or is mostly history. False: out of time, there is more
    /// to do.
    [[nodiscard]] bool look_after_file(const std::function<bool()>& out_of_time);

  private:
    [[nodiscard]] bool replay(std::string_view text);
    void take_line(Line line);
    void use(const machine::Subject& subject, Record record);
    [[nodiscard]] std::shared_ptr<const Terms> share(Terms terms, std::string text, bool is_of_task);
    [[nodiscard]] std::string line_of(const Records::value_type& record) const;
    [[nodiscard]] Result<std::string> read(bool& is_lost);
    [[nodiscard]] Result<void> write_whole(std::string_view old);
    [[nodiscard]] Result<void> append(const std::string& line);
    [[nodiscard]] bool is_in_place() const;
    [[nodiscard]] bool is_bloated() const;
    [[nodiscard]] Result<void> renew_folder();
    [[nodiscard]] std::string rewrite_path() const { return path_ + ".new"; }
    void begin_rewrite();
    void rewrite_some();
    void add_to_rewrite(std::string_view text);
    void finish_rewrite();
    void give_up_rewrite();
    Journal() = default;

    Records held_, past_;
    std::deque<machine::Subject> gone_; ///< those of past_ that are, the oldest first
    std::unordered_map<std::string, std::weak_ptr<const Terms>> terms_; ///< by to_text()
    std::size_t most_terms_ = 64;      ///< there may be that many before those that nothing uses are dropped
    std::unordered_set<CpuSet> masks_; ///< that tasks have or had from us; some more, until terms are dropped

    std::string path_; ///< "": in memory only
    host::Fd file_;
    std::size_t bytes_ = 0;       ///< of it that were written
    std::size_t whole_bytes_ = 0; ///< of them when it was last written as a whole
    bool is_torn_ = false;        ///< the last write ended inside a line
    host::Fd rewrite_;            ///< beside it; none: it is not being written anew
    std::size_t rewritten_bytes_ = 0;
    Cursor rewritten_;                ///< up to where it has the records
    bool has_rewritten_held_ = false; ///< and goes on with past_
    std::vector<Error> faults_;
    std::optional<Error> trouble_;
    bool damaged_ = false;
};

} // namespace affinityd::state

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "planner/undo.hpp"
#include "state/entry.hpp"
#include "state/journal_contents.hpp"
#include "state/journal_writer.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::state {

/// The undo journal: what was changed and what it was before, on disk before the change. It
/// lives under the runtime directory, because affinity does not outlive a boot.
///
/// It is a text file with one record a line. The last record of a subject is its state. The records of
/// subjects that live on without one are there, too, so that a mask of ours is not taken for an original.
class Journal final : public planner::UndoLookup {
  public:
    /// Opens or creates the file and reads what an earlier daemon left in it. If the disk is full, the old
    /// file stays in use. With "" nothing is written anywhere (dry run): the journal is in memory only.
    static Result<Journal> open(const std::string& path);

    [[nodiscard]] std::optional<planner::UndoRecord> find(const machine::Subject& subject) const override {
        return contents_.find(subject);
    }
    /// The same without a copy.
    [[nodiscard]] bool contains(const machine::Subject& subject) const {
        return contents_.held().contains(subject);
    }

    /// Before a change: keeps the first original, notes what is asked for. If this fails, the change must not
    /// be made. Until it is confirmed, what the subject was set to before is ours, too. `since`: now, in
    /// clock ticks since boot; 0: the subject may have had that for longer. `present`: what a subject with a
    /// record is set to by the kernel's doing; null: to what it was granted.
    [[nodiscard]] Result<void> remember(const machine::Subject& subject, const machine::Setting& original,
                                        const machine::Setting& asked, const std::string& policy,
                                        std::uint64_t since = 0, const machine::Setting* present = nullptr);
    /// After it: what the kernel made of it.
    [[nodiscard]] Result<void> confirm(const machine::Subject& subject, const machine::Setting& granted);
    /// Without a change: the subject was not changed after all, and its record is the one that it had, or
    /// what it is set to is found to be from us.
    [[nodiscard]] Result<void> put(const machine::Subject& subject, planner::UndoRecord record);
    /// The subject is gone, or was not changed after all.
    [[nodiscard]] Result<void> forget(const machine::Subject& subject);
    /// It has no record in force any more, and lives on: the mask that a task has from now on is its own, and
    /// not inherited.
    [[nodiscard]] Result<void> settle(const machine::Subject& subject, Parting parting = Parting::put_back);
    /// What was kept is to be put back after all: its record is in force again.
    [[nodiscard]] Result<void> resume(const machine::Subject& subject);

    /// A setting that is ours.
    struct Ours {
        std::optional<machine::Setting> original; ///< no value: it is not known any more
    };
    /// Says whether what a subject is set to came from us, by more than its record in force, compared on
    /// online CPUs: it was kept, or somebody set it anew, or its record was lost. Of one that has a record:
    /// it had that from us earlier, and it is wider than what it has now, as what a program reads while it
    /// settles is; or its process's main thread had, as threads set what that has read. What is not wider may
    /// as well be somebody's choice.
    [[nodiscard]] std::optional<Ours> recall(const machine::Subject& subject, const machine::Setting& present,
                                             const CpuSet& online) const;
    /// The record, in force or past, of what was where the subject is, under another name. It is the
    /// subject's own if what it is set to is still ours by that record.
    [[nodiscard]] std::optional<Entry> find_former(const machine::Subject& subject) const;
    /// What is known of `from` is known of `to` instead, unless that has a record.
    /// `replaces`: also then, as a thread that runs another program is the main thread from then on.
    [[nodiscard]] Result<void> rename(const machine::Subject& from, const machine::Subject& to,
                                      bool replaces = false);
    /// Its parts, such as past(): subjects that live on without a record, the mask of such a task is its own.
    [[nodiscard]] const JournalContents& contents() const { return contents_; }

    using Cursor = Records::Cursor;
    /// The next record, tasks first; with `policy` only records on its behalf. No value: the end.
    [[nodiscard]] std::optional<Entry> next(Cursor& cursor,
                                            std::optional<std::string_view> policy = {}) const {
        return contents_.held().next(cursor, policy);
    }
    /// Everything but tasks: interrupts, steering maps, flow tables, units. With `device`, only what belongs
    /// to that device.
    [[nodiscard]] std::vector<Entry> queues(std::optional<std::string_view> device = {}) const {
        return contents_.held().queues().all(device);
    }
    [[nodiscard]] std::size_t size() const { return contents_.held().size(); }

    /// What explains a mask that a child of process `creator` was born with: the record of a thread there
    /// that has, or had when the child was born, the mask from us. `born`: clock ticks since boot; 0: not
    /// known.
    [[nodiscard]] std::optional<MaskSource> find_mask_source(int creator, const CpuSet& mask,
                                                             const CpuSet& online, std::uint64_t born = 0);
    /// For add_former(), where no record says that a task had a mask from us; and for age(), at each pass's
    /// end.
    [[nodiscard]] MaskSources& mask_sources() { return contents_.sources(); }

    /// A mask that was given to a task of a policy, unless that is known.
    [[nodiscard]] Result<void> note_given(GivenMask given);
    /// A pass has ended: what was given to policies that have no task any more is over.
    [[nodiscard]] Result<void> end_given(std::uint64_t now);
    /// The daemon ends and has put everything back.
    [[nodiscard]] Result<void> forget_given();

    /// True if lines of the file were lost, until mended() has succeeded, possibly in a later daemon:
    /// subjects without a record may be ours.
    [[nodiscard]] bool damaged() const { return damaged_; }
    /// What was found amiss when the files were opened, or with their folder later, for a person; and last,
    /// as long as that is so, why they are gone and cannot be written anew: until they can, nothing is
    /// written down.
    [[nodiscard]] std::vector<Error> faults() const { return writer_.faults(); }
    /// Subjects in place without a record have been assumed ours, and are in the journal now.
    [[nodiscard]] Result<void> mended();
    /// Writes the files anew if somebody has removed or cut them. False: out of time, there is more to do.
    [[nodiscard]] bool look_after_files(const std::function<bool()>& out_of_time) {
        return writer_.look_after_files(contents_, damaged_, out_of_time);
    }

  private:
    JournalContents contents_;
    JournalWriter writer_;
    bool damaged_ = false;
};

} // namespace affinityd::state

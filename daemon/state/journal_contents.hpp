// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state/given_masks.hpp"
#include "state/mask_sources.hpp"
#include "state/past_records.hpp"
#include "state/record.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace affinityd::state {

/// What the undo journal knows: records that are in force, those of the past, and which masks children may
/// have inherited from either.
class JournalContents {
  public:
    /// The subject has an undo record from now on. `since`: when it was given the mask, in clock ticks since
    /// boot; 0: it may have had it for longer.
    void hold(const machine::Subject& subject, planner::UndoRecord record, std::uint64_t since = 0);
    /// It has one no more, and lives on. `until`: when it had the mask last, in clock ticks since boot; 0:
    /// now.
    void part(const machine::Subject& subject, const planner::UndoRecord& record, Parting parting,
              std::uint64_t until = 0);
    /// False if neither process ever passed on a mask that we set, so that nothing need be looked for in
    /// sources().
    [[nodiscard]] bool is_mask_source(int pid, int parent) const;
    /// Nothing is known of it any more.
    void erase(const machine::Subject& subject);
    /// Takes over what the file's text says. True: lines of it are lost.
    [[nodiscard]] bool replay(std::string_view text);

    /// The record in force.
    [[nodiscard]] std::optional<planner::UndoRecord> find(const machine::Subject& subject) const;
    /// True if it is not known whether its last change was made. Cheap.
    [[nodiscard]] bool is_unconfirmed(const machine::Subject& subject) const {
        return !before_.empty() && before_.contains(subject);
    }
    /// All of them, without what a subject was set to before an unconfirmed change.
    [[nodiscard]] const Records& held() const { return held_; }
    [[nodiscard]] const PastRecords& past() const { return past_; }
    [[nodiscard]] MaskSources& sources() { return sources_; }
    [[nodiscard]] const MaskSources& sources() const { return sources_; }
    [[nodiscard]] GivenMasks& given() { return given_; }
    [[nodiscard]] const GivenMasks& given() const { return given_; }
    [[nodiscard]] std::size_t size() const { return held_.size() + past_.size() + given_.size(); }

    /// The next line of a walk over all, which is that of a record, or of a mask that was given.
    struct Cursor {
        Records::Cursor held;
        PastRecords::Cursor past;
        std::size_t given = 0, shifts = 0;
    };
    struct Line {
        std::string text;
        std::optional<Entry> entry{}; ///< no value: it is no record's
    };
    /// No value: the end.
    [[nodiscard]] std::optional<Line> next(Cursor& cursor) const;

    /// For how long a task has, or had, the mask of a record.
    [[nodiscard]] MaskSources::Span span_of(const machine::Subject& subject,
                                            const planner::UndoRecord& record) const;

  private:
    void erase_held(const machine::Subject& subject);
    void erase_past(const machine::Subject& subject);
    Records held_;
    std::unordered_map<machine::Subject, machine::Setting> before_; ///< of unconfirmed changes
    PastRecords past_;
    MaskSources sources_;
    GivenMasks given_;
};

} // namespace affinityd::state

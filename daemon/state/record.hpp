// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/undo.hpp"
#include "state/past_records.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace affinityd::state {

/// One line of the undo journal.
struct Record {
    machine::Subject subject;
    std::optional<planner::UndoRecord> undo; ///< no value: it has none any more
    /// Without `undo`: its last record, if the subject lives on. No value: it was forgotten.
    std::optional<PastRecords::Past> past = std::nullopt;
    /// Since when a task has its mask from us, or until when it had that; in clock ticks since boot, 0: not
    /// known.
    std::uint64_t since_or_until = 0;
};

/// "fields separated by tabs, then a checksum", with the line end. Names are escaped: they are hostile bytes.
/// Without `undo`: the subject was forgotten.
[[nodiscard]] std::string to_line(const machine::Subject& subject, const planner::UndoRecord* undo,
                                  std::uint64_t since = 0);
/// The last record of a subject that has none in force any more.
[[nodiscard]] std::string to_line(const machine::Subject& subject, const planner::UndoRecord* last,
                                  Parting parting, std::uint64_t until = 0);
/// Reads a line without its end. Lines of version 0.1 are understood, too, since a journal may be older than
/// the program. No value: the line is torn, or no record.
[[nodiscard]] std::optional<Record> parse_line(std::string_view line);

/// The same text for the same subject whatever its number or name is now, also in later versions.
[[nodiscard]] std::string identity_of(const machine::Subject& subject);

} // namespace affinityd::state

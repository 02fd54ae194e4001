// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/undo.hpp"
#include "state/past_records.hpp"

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
};

/// "fields separated by tabs, then a checksum", with the line end. Names are escaped: they are hostile bytes.
/// Without `undo`: the subject was forgotten.
[[nodiscard]] std::string to_line(const machine::Subject& subject, const planner::UndoRecord* undo);
/// The last record of a subject that has none in force any more.
[[nodiscard]] std::string to_line(const machine::Subject& subject, const planner::UndoRecord* last,
                                  Parting parting);
/// Reads a line without its end. Lines of version 0.1 are understood, too, since a journal may be older than
/// the program. No value: the line is torn, or no record.
[[nodiscard]] std::optional<Record> parse_line(std::string_view line);

/// The same text for the same subject whatever its number or name is now, also in later versions.
[[nodiscard]] std::string identity_of(const machine::Subject& subject);

} // namespace affinityd::state

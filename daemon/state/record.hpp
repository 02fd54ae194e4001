// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/undo.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace affinityd::state {

/// One line of the undo journal.
struct Record {
    machine::Subject subject;
    std::optional<planner::UndoRecord> undo; ///< no value: the subject was forgotten
};

/// "fields separated by tabs, then a checksum", with the line end. Names are escaped: they are hostile bytes.
/// Without `undo`: the subject was forgotten.
[[nodiscard]] std::string to_line(const machine::Subject& subject, const planner::UndoRecord* undo);
/// Reads a line without its end. Lines of version 0.1 are understood, too, since a journal may be older than
/// the program. No value: the line is torn, or no record.
[[nodiscard]] std::optional<Record> parse_line(std::string_view line);

} // namespace affinityd::state

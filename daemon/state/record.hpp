// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/held.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace affinityd::state {

/// One line of the undo journal.
struct Record {
    planner::Subject subject;
    std::optional<planner::Held> held; ///< nothing: the subject was forgotten
};

/// "fields separated by tabs, then a checksum", with the line end. Names are escaped: they are hostile bytes.
[[nodiscard]] std::string to_line(const Record& record);
/// The other way; nothing if the line is torn or was not written by us.
[[nodiscard]] std::optional<Record> parse_line(std::string_view line);

/// The identity of an interrupt or steering map as text, for lookups.
[[nodiscard]] std::string queue_key(const planner::Subject& subject);

} // namespace affinityd::state

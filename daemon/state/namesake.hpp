// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state/entry.hpp"
#include "state/journal_contents.hpp"

#include <optional>

namespace affinityd::state {

// A virtual interface is known by its name, which another one may have after it: the index tells them apart.

/// The record, in force or past, of an interface that had the subject's name and is not the subject's.
[[nodiscard]] std::optional<Entry> find_namesake(const JournalContents& contents,
                                                 const machine::Subject& subject);

/// The same queue under a name that no interface can have: until the interface of its index is seen again.
[[nodiscard]] machine::Subject by_index(machine::Subject subject);

} // namespace affinityd::state

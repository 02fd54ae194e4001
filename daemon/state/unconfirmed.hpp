// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state/journal.hpp"

namespace affinityd::state {

/// True if a subject was never changed: its record is that of a first change, and it is still set to what it
/// was before that, compared on online CPUs.
[[nodiscard]] bool is_untouched(const planner::UndoRecord& record, const machine::Setting& present,
                                const CpuSet& online);

/// Whether a change was made that nobody confirmed is told by what the subject is set to when it is looked at
/// next. From then on, only what that leaves is ours. Cheap for all other subjects.
[[nodiscard]] Result<void> settle_unconfirmed(Journal& journal, const machine::Subject& subject,
                                              const machine::Setting& present, const CpuSet& online);

} // namespace affinityd::state

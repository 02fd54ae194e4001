// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state/journal.hpp"

namespace affinityd::state {

/// Servers give a listener to a new worker when they are reloaded: its record, where it has one, says who has
/// it now, so that a later daemon finds it.
[[nodiscard]] Result<void> note_place(Journal& journal, const machine::ListenerCpu& listener);

} // namespace affinityd::state

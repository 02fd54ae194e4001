// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/undo.hpp"

namespace affinityd::state {

/// A subject that we changed, with what is known of it.
struct Entry {
    machine::Subject subject;
    planner::UndoRecord record;
};

} // namespace affinityd::state

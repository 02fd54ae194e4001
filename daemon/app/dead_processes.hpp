// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "state/journal.hpp"

namespace affinityd::host {
class Root;
}

namespace affinityd::app {

/// Forgets the records of threads whose processes ended while no daemon ran. Before any task is looked at: a
/// number may be another process's by now, whose children have nothing from us. Which masks were given to
/// whom stays known (state/given_masks.hpp).
void forget_dead_processes(const host::Root& root, state::Journal& journal, Log& log);

} // namespace affinityd::app

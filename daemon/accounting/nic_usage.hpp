// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/task_table.hpp"
#include "app/world.hpp"

namespace affinityd::host {
class Root;
}

namespace affinityd::app {

/// Which interface serves which process under policy: by the local addresses of its sockets, wildcard
/// listeners by all interfaces the policy allows. Notes the names at each process and counts units per policy
/// and interface.
[[nodiscard]] planner::Serving find_serving(const host::Root& root, const World& world, TaskTable& tasks);

/// The same for policies whose placement does not need it (`affinity: none | process`) and that name no
/// interfaces: by policy, from a few of its processes, for what is only told to people. Bounded: of very many
/// sockets a sample is read, and after some milliseconds no further process is asked. `next` is where the
/// call after that goes on: the process to begin with.
[[nodiscard]] planner::Serving find_used_nics(const host::Root& root, const World& world,
                                              const TaskTable& tasks, int& next);

} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/task_table.hpp"
#include "app/world.hpp"

namespace affinityd::host {
class Root;
}

namespace affinityd::app {

/// Which interface serves which process under policy: by the local addresses of its sockets, wildcard listeners by all
/// interfaces the policy allows. Notes the names at each process and counts units per policy and interface.
[[nodiscard]] planner::Serving find_serving(const host::Root& root, const World& world, TaskTable& tasks);

} // namespace affinityd::app

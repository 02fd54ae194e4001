// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/world.hpp"
#include "base/error.hpp"

#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::app {

/// A world that was read whole, and what the policies' author should know about them.
struct LoadedWorld {
    std::shared_ptr<World> world;
    std::string diagnostics; ///< warnings and notes, a line each; "": there are none
};

/// Reads policies and machine. An Error, with all diagnostics in its message: there is no good set.
[[nodiscard]] Result<LoadedWorld> load_world(const host::Root& root, const std::vector<std::string>& folders,
                                             const planner::NicUsage& usage);

} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/action.hpp"

#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}
namespace affinityd::state {
class Journal;
}

namespace affinityd::app {

/// Another affinityd on this machine, with a runtime directory of its own, that holds things which we hold
/// too: they will go on undoing each other's work until a person decides.
struct Neighbour {
    std::string runtime_dir;
    std::vector<planner::Subject> shared; ///< never empty
};

/// Finds them by their control sockets (proc_net(5), unix) and reads their undo journals, if root or we
/// ourselves own them.
[[nodiscard]] std::vector<Neighbour> find_neighbours(const host::Root& root, const std::string& runtime_dir,
                                                     const state::Journal& journal);

} // namespace affinityd::app

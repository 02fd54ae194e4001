// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace affinityd::app {

/// How far a full pass has come: the processes that were there when it began, and the next one to look at.
struct Reconcile {
    std::vector<int> pids;
    std::size_t next = 0;
    std::uint64_t number = 0; ///< of this pass; processes it saw carry it
};

} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "planner/assignments.hpp"
#include "planner/placements.hpp"

#include <span>
#include <vector>

namespace affinityd::planner {

/// A worker that changes over to another lane: for Assignments::move().
struct WorkerMove {
    TaskId worker;
    unsigned table = 0, from = 0;
    Slot to;
};

/// Workers with listeners of their own get what arrives on their lanes, and a lane without a worker leaves
/// what arrives there to all of them by a hash. So each lane on which packets arrive gets one, from lanes
/// that have several: it is dealt by the work that tasks have, and a server's master, or a worker that ends,
/// has a lane, too. `workers`: of one server, each once; those that a cpuset keeps from some lanes stay. The
/// lane that has most gives first, and of its workers the last. Pure.
[[nodiscard]] std::vector<WorkerMove> spread_workers(const ResolvedPolicy& resolved,
                                                     const Placements& placements,
                                                     const Assignments& assignments,
                                                     std::span<const TaskId> workers);

} // namespace affinityd::planner

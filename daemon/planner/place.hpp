// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/task.hpp"
#include "planner/assignments.hpp"
#include "planner/placements.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::planner {

/// One thread, as place() needs it.
struct Unit {
    TaskId process;                 ///< main thread of its process
    const inventory::Thread* thread = nullptr;
    unsigned index = 0;             ///< place among the process's threads by tid, 0 = main thread
    const std::vector<std::string>* nics = nullptr; ///< interfaces that serve the process; null: not known
};

/// Where a thread is to be.
struct Target {
    CpuSet mask;                    ///< never empty, online CPUs only
    std::size_t policy = 0;         ///< index into the set
    DealId deal;
    CpuSet home;                    ///< the seat
};

/// The one decision about a thread of a process under `policy` (an index into the set): start, reconcile and fast path
/// all ask here. Nothing: the policy leaves this thread alone.
[[nodiscard]] std::optional<Target> place(const Placements& placements, Assignments& assignments, std::size_t policy, const Unit& unit);

/// Why it is to be there, for people.
[[nodiscard]] std::string reason_of(const Placements& placements, const Target& target);

/// True if the units of this policy are threads rather than processes (a `spread` is given).
[[nodiscard]] bool deals_threads(const policy::Placement& placement);

} // namespace affinityd::planner

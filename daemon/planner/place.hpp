// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/task.hpp"
#include "planner/assignments.hpp"
#include "planner/placements.hpp"

#include <expected>
#include <string>
#include <vector>

namespace affinityd::planner {

/// One thread, as place() needs it.
struct Unit {
    TaskId process; ///< main thread of its process
    const inventory::Thread* thread = nullptr;
    unsigned index = 0; ///< place among the process's threads by tid, 0 = main thread
    const std::vector<std::string>* nics = nullptr; ///< interfaces that serve the process; null: not known
    const CpuSet* cpuset = nullptr; ///< CPUs that its cgroup lets it have; null: all, or not known
    bool may_be_reset = false; ///< the kernel may have made its mask as wide as can be (kernels before 6.2,
                               ///< with CPUs or cpusets)
};

/// Where a thread is to be.
struct Target {
    CpuSet mask;            ///< never empty, online CPUs only
    std::size_t policy = 0; ///< index into the set
    DealId deal;
    CpuSet home; ///< the seat
};

/// Why a thread under a policy has no place.
enum class NoPlace {
    left_alone, ///< the policy does not touch it: model none or irq, leave, or it cannot be applied now
    outside,    ///< none of the places that it could have is within its cpuset
};

/// The one decision about a thread of a process under `policy` (an index into the set): start, reconcile and
/// fast path all ask here.
[[nodiscard]] std::expected<Target, NoPlace> place(const Placements& placements, Assignments& assignments,
                                                   std::size_t policy, const Unit& unit);

/// Why it is to be there, for people.
[[nodiscard]] std::string reason_of(const Placements& placements, const Target& target);

/// True if the units of this policy are threads rather than processes (a `spread` is given).
[[nodiscard]] bool deals_threads(const policy::Placement& placement);

} // namespace affinityd::planner

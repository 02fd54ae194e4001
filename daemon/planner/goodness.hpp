// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/cpu_load.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace affinityd::planner {

/// How well the tasks under policy are placed.
struct Goodness {
    Weight busiest = 0;       ///< load of the busiest core
    Weight least = 0;         ///< no placement that the policies allow has a busiest core below this
    std::size_t off_node = 0; ///< tasks that are not on the node of the interfaces that their policy names
    std::size_t paired = 0;   ///< tasks that share a core although one that they might have is free
    std::size_t moves = 0;    ///< tasks that the last re-deal moved
    [[nodiscard]] double balance() const; ///< least / busiest, 0..1; 1 without any load
};

/// One line: "balance 0.93: the busiest core has 1.08 of work, 1.00 at best; ...".
[[nodiscard]] std::string to_string(const Goodness& goodness);

/// Work that may be anywhere in a set of cores.
struct Confined {
    CpuSet cpus;                ///< of all slots that it could have
    std::vector<Weight> pieces; ///< what each task puts on a single core, wherever it is
    Weight total = 0;
};

/// A lower bound for the load of the busiest core, by counting: work that is confined to some cores has to be
/// done there, and of n tasks on m cores some core has n/m, rounded up. `fixed`: work that cannot be moved.
[[nodiscard]] Weight least_busiest(const std::vector<Confined>& work, const CpuLoad& fixed);

} // namespace affinityd::planner

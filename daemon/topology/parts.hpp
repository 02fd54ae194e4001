// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace affinityd::topology {

/// A thing that a machine is made of, with what is inside it: for pictures and lists.
struct Part {
    enum class Kind { machine, drawer, book, package, node, die, cache, cluster, core, cpu };
    Kind kind = Kind::machine;
    std::size_t index = 0;   ///< into the Topology's list of that kind (packages, nodes, caches, cores, cpus,
                             ///< ...); 0 for the machine
    CpuSet cpus;             ///< online CPUs; never empty
    std::vector<Part> parts; ///< by first CPU, disjoint, each within `cpus`
};

/// A machine as boxes in boxes.
struct PartTree {
    Part machine;
    std::vector<Part> crossing; ///< groups that overlap others without one holding the other: they have no
                                ///< place in the tree
};

/// Nests all groups of a topology, the wider outside; of two that name the same CPUs the one that is listed
/// first in Kind (and of caches the higher level) is outside. Nodes without CPUs are not in the tree. Every
/// online CPU is in it exactly once.
[[nodiscard]] PartTree nest(const Topology& topology);

/// The number by which CPU-set expressions name a package: the kernel's id, or where it gives none the place
/// in the list.
[[nodiscard]] unsigned package_number(const Topology& topology, std::size_t package);

/// "L3", "L1d", "L1i".
[[nodiscard]] std::string cache_name(const Cache& cache);

} // namespace affinityd::topology

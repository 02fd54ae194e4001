// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/topology/part_names.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace affinityctl {

using affinityd::topology::Part;

/// A core with caches of its own and CPUs that differ in nothing but their numbers.
struct PlainCore {
    std::string caches; ///< "L2 1 MiB + L1d 32 KiB"
    std::string kind;   ///< "performance"; "" where all cores are alike
    std::string marks;  ///< "isolated"; of each of its CPUs
    std::size_t number = 0;
    std::vector<unsigned> cpus;
};

/// The cores at the front of `parts`, from the position `from` on, that have all but their numbers in common.
/// `is_bare` says whether a part has nothing to show but itself.
[[nodiscard]] std::vector<PlainCore> alike_cores(const std::vector<Part>& parts, std::size_t from,
                                                 const PartNames& names,
                                                 const affinityd::topology::Topology& topology,
                                                 const std::function<bool(const Part&)>& is_bare);

/// "L2 1 MiB + L1d 32 KiB + cores 0-7, 8 alike: CPUs 0-7 + 8-15": the first CPU of each core, then the
/// second.
[[nodiscard]] std::string alike_text(const std::vector<PlainCore>& cores);

} // namespace affinityctl

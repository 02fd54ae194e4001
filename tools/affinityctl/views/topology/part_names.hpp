// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/parts.hpp"
#include "topology/topology.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityctl {

/// Finds the part of a machine that holds certain CPUs, without a look at all of its thousands.
class PartSearch {
  public:
    /// `machine` must outlive this object and not change.
    explicit PartSearch(const affinityd::topology::Part& machine);
    /// The deepest part that holds all of `cpus`, at most as deep as a core; the whole machine if there is
    /// none, or for the empty set.
    [[nodiscard]] const affinityd::topology::Part& smallest_holding(const affinityd::CpuSet& cpus) const;

  private:
    void add(const affinityd::topology::Part& part);

    const affinityd::topology::Part& machine_;
    std::unordered_map<unsigned, const affinityd::topology::Part*> deepest_; ///< by CPU
    std::unordered_map<const affinityd::topology::Part*, const affinityd::topology::Part*> outer_;
};

/// "31.1 GiB", "1 MiB", "32 KiB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

/// What the parts of one machine are called. CPU-set expressions use the same numbers.
class PartNames {
  public:
    /// The topology must outlive this object.
    explicit PartNames(const affinityd::topology::Topology& topology);
    /// "package 0", "node 1 (31.1 GiB)", "llc 2 (L3 11 MiB)", "core 5", "CPU 17".
    [[nodiscard]] std::string of(const affinityd::topology::Part& part) const;
    /// "performance": the kind of a core, "" where all are alike.
    [[nodiscard]] std::string kind_of(const affinityd::topology::Part& core) const;

  private:
    [[nodiscard]] std::string of_cache(const affinityd::topology::Part& part) const;

    const affinityd::topology::Topology& topology_;
    std::map<affinityd::CpuSet, std::size_t> llcs_; ///< their numbers
};

/// "32 CPUs, 16 cores, 2 packages, 2 nodes, 62.5 GiB".
[[nodiscard]] std::string machine_summary(const affinityd::topology::Topology& topology);

/// "isolated", "nohz_full": what the kernel was told of one CPU when it was booted.
[[nodiscard]] std::vector<std::string> boot_marks(const affinityd::topology::Topology& topology,
                                                  unsigned cpu);

/// "performance" and those: the special properties of one CPU; most have none.
[[nodiscard]] std::vector<std::string> cpu_marks(const affinityd::topology::Topology& topology, unsigned cpu);

} // namespace affinityctl

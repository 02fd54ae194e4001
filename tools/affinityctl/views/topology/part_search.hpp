// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/parts.hpp"

#include <unordered_map>

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

} // namespace affinityctl

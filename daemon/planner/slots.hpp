// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "policy/policy.hpp"
#include "topology/topology.hpp"

#include <vector>

namespace affinityd::planner {

/// A place in a distribution: where a thread, or a whole process, is put.
struct Slot {
    CpuSet cpus; ///< the CPUs it stands for; the first of them is its name across re-plans
    CpuSet mask; ///< what its tasks are given: `cpus` widened to the policy's `bind` level
    friend bool operator==(const Slot&, const Slot&) = default;
};

/// A level's groups, cut to `allowed`, without empty ones, by first CPU. CPUs the machine puts in no group of
/// that level (no NUMA node, no package id) form one group of their own, so that no allowed CPU is lost; one
/// that is in no core is a core.
[[nodiscard]] std::vector<CpuSet> groups_of(const topology::Topology& topology, policy::Bind level,
                                            const CpuSet& allowed);

/// The slots of a placement, in the order in which they are given out:
///  - the finer of `spread` and `bind` is the size of a slot (`any`: that of `bind`);
///  - a coarser `spread` takes its groups in turn (llc 0, llc 1, llc 0, ...);
///  - single CPUs that share a core with an earlier allowed one come last; with smt: avoid they are left out;
///  - with `near`, slots closer to those CPUs by NUMA distance come first.
/// `allowed` must not be empty and holds online CPUs only; no slot's mask is ever empty or leaves `allowed`.
[[nodiscard]] std::vector<Slot> make_slots(const topology::Topology& topology,
                                           const policy::Placement& placement, const CpuSet& allowed,
                                           const CpuSet& near);

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "policy/policy.hpp"
#include "topology/topology.hpp"

#include <vector>

namespace affinityd::planner {

/// One seat of a deal: where a unit (a thread, or a whole process) is put.
struct Slot {
    CpuSet home; ///< the CPUs the seat stands for; its first CPU is the seat's name across re-plans
    CpuSet mask; ///< what the unit's tasks are given: `home` widened to the policy's `bind` level
    friend bool operator==(const Slot&, const Slot&) = default;
};

/// A level's groups, cut to `allowed`, without empty ones, by first CPU. CPUs the machine puts in no group of
/// that level (no NUMA node, no package id) form one group of their own, so that no allowed CPU is lost; one
/// that is in no core is a core.
[[nodiscard]] std::vector<CpuSet> groups_of(const topology::Topology& topology, policy::Bind level,
                                            const CpuSet& allowed);

/// The seats of a placement, in the order in which they are dealt:
///  - the finer of `spread` and `bind` is the size of a seat (`any`: that of `bind`);
///  - a coarser `spread` takes its groups in turn (llc 0, llc 1, llc 0, ...);
///  - single CPUs that share a core with an earlier allowed one come last; with smt: avoid they are left out;
///  - with `near`, seats closer to those CPUs by NUMA distance come first.
/// `allowed` must not be empty and holds online CPUs only; no seat's mask is ever empty or leaves `allowed`.
[[nodiscard]] std::vector<Slot> make_slots(const topology::Topology& topology,
                                           const policy::Placement& placement, const CpuSet& allowed,
                                           const CpuSet& near);

} // namespace affinityd::planner

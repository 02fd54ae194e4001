// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "policy/cpu_expr.hpp"
#include "policy/policy.hpp"
#include "topology/topology.hpp"

#include <expected>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace affinityd::planner {

/// A place in a distribution: where a thread, or a whole process, is put.
struct Slot {
    CpuSet cpus;           ///< the CPUs it stands for; the first of them is its name across re-plans
    CpuSet mask;           ///< what its tasks are given: `cpus` widened to the policy's `bind` level
    unsigned distance = 0; ///< to what the placement wants it near to: 0 among these CPUs or without `near`,
                           ///< 1 in their cache group, else the NUMA distance (10 or more)
    friend bool operator==(const Slot&, const Slot&) = default;
};

/// How far each online CPU, by its number, is from the nearest of some CPUs: 0 if it is one of them, 1 in the
/// cache group of one, else the NUMA distance (10 or more).
[[nodiscard]] std::vector<unsigned> distances_to(const topology::Topology& topology, const CpuSet& near);

/// The groups cut to `allowed` and in the order of their first CPUs; none is empty. CPUs that are in none
/// (no NUMA node, no package id) form one more group, so that no allowed CPU is lost.
[[nodiscard]] std::vector<CpuSet> cut_groups(std::vector<CpuSet> groups, const CpuSet& allowed);
/// The same of those of a level; a CPU that is in no core is a core of its own.
[[nodiscard]] std::vector<CpuSet> groups_of(const topology::Topology& topology, policy::Bind level,
                                            const CpuSet& allowed);

/// The slots of a placement, in the order in which they are given out:
///  - A slot has the size of the finer of `spread` and `bind`; with `spread: any`, that of `bind`.
///  - A coarser `spread` takes its groups in turn: llc 0, llc 1, llc 0, ...
///  - Single CPUs that share a core with an earlier allowed one come last; `smt: avoid` leaves them out.
///  - With `smt: pair`, two CPUs of a core are a slot.
///  - With `near`, slots that are closer to those CPUs by NUMA distance come first.
///  - The scheduler does not balance load over isolated CPUs: a task with several of them in its mask stays
///    on one. So each of them is a slot of its own, and in the mask of no other slot.
/// `allowed` holds online CPUs only, at least one. Masks are never empty and stay within `allowed`.
[[nodiscard]] std::vector<Slot> make_slots(const topology::Topology& topology,
                                           const policy::Placement& placement, const CpuSet& allowed,
                                           const CpuSet& near);

/// True if `bind` would give tasks isolated CPUs together with others, were these not slots of their own.
[[nodiscard]] bool parts_isolated(const topology::Topology& topology, policy::Bind bind,
                                  const CpuSet& allowed);

/// The slots for a task of a pair: those of two CPUs, in which it has the first if its number is even, else
/// the second. None: no slot has two.
[[nodiscard]] std::vector<Slot> halves(const std::vector<Slot>& pairs, unsigned number);

/// The slots that a cpuset leaves, cut to it: the kernel would cut the mask, or refuse it if no CPU were
/// left.
[[nodiscard]] std::vector<Slot> cut_slots(const std::vector<Slot>& slots, const CpuSet& cpuset);

/// The CPUs that an expression stands for on a machine. They are online, except for CPU numbers that are
/// written out: those must be possible, and are kept while they are offline. `nics`: the CPUs near each
/// interface, for nic:NAME, where NAME may be a glob. `own`: what a bare `nic` stands for. The error gives
/// the part that the machine lacks by its place in the text; after '-' and '!' such a part takes nothing
/// away.
[[nodiscard]] std::expected<CpuSet, policy::CpuExprError>
evaluate(const policy::CpuExpr& expr, const topology::Topology& topology,
         const std::map<std::string, CpuSet, std::less<>>& nics, const CpuSet& own);

} // namespace affinityd::planner

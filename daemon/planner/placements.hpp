// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/action.hpp"
#include "planner/machine.hpp"
#include "planner/slots.hpp"
#include "policy/policy.hpp"

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::planner {

/// What was seen of who is served by which interface: policy -> interface -> units (as dealt: processes, or
/// threads). It names the interfaces of `nics: auto` and says over how many lanes a NIC's queues are worth
/// spreading.
using Serving = std::map<std::string, std::map<std::string, unsigned>>;

/// A steering map or interrupt that a policy wants somewhere.
struct QueueTarget {
    Subject subject; ///< IrqMask or SteeringMask
    CpuSet present;  ///< as read
    CpuSet wanted;   ///< one CPU for an interrupt; empty for steering that is to be off
    std::string nic; ///< interface
    std::string policy;
    std::string reason;
};

/// A kernel thread that does a queue's work (threaded NAPI, irq/N-name): placed as the interrupt would be.
struct QueueThread {
    CpuSet wanted;
    std::string policy;
    std::string reason;
};

/// One interface's lanes under a policy: lane i is a core that takes queue i's interrupts and, under `full`,
/// the tasks.
struct NicDeal {
    std::string nic;
    std::vector<Slot> lanes;
};

/// One policy, worked out on one machine.
struct Compiled {
    const policy::Policy* policy = nullptr;
    CpuSet allowed;                       ///< never empty if active
    bool active = false;                  ///< false: cannot be carried out here; problems say why
    std::vector<std::vector<Slot>> deals; ///< 0: own placement; i + 1: thread rule i
    std::vector<std::pair<CpuSet, std::vector<Slot>>>
        together;                ///< groups of `together` with the own placement's slots inside
    std::vector<NicDeal> nics;   ///< of irq and full
    std::vector<Slot> all_lanes; ///< lanes of all its interfaces in turn, for tasks served by several or none
    [[nodiscard]] const NicDeal* nic(std::string_view name) const;
};

/// All policies on a machine: what `place` needs, with everything evaluated that does not depend on a single
/// task. `policies` and `machine` must outlive it. The same input gives the same placements.
struct Placements {
    std::vector<Compiled> policies; ///< in the set's order
    CpuSet online;
    CpuSet claimed; ///< CPUs of `exclusive: true` policies
    std::vector<QueueTarget> queues;
    std::unordered_map<int, QueueThread> threads; ///< by tid
    std::vector<Problem> problems;
};

[[nodiscard]] Placements compile(const policy::PolicySet& policies, const Machine& machine,
                                 const Serving& serving);

/// Names of the interfaces that a policy names or, for `auto`, that serve it; stacked devices resolved to the
/// lower devices that have queues. In the machine's order, without repetition.
[[nodiscard]] std::vector<std::string> policy_nics(const policy::Policy& policy, const Machine& machine,
                                                   const Serving& serving);

} // namespace affinityd::planner

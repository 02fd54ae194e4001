// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"
#include "planner/action.hpp"
#include "planner/cpu_load.hpp"
#include "planner/slots.hpp"
#include "policy/policy.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::planner {

/// Names of interfaces, none twice.
using NicNames = std::vector<std::string>;

/// NIC usage: policy -> interfaces -> tasks that these serve, each of them, counted as tasks are distributed
/// (processes, or threads). No interfaces: tasks of which it is not known which ones serve them. It names
/// the interfaces of `nics: auto`, and says over how many lanes queues are worth spreading and which
/// interfaces must share them.
using NicUsage = std::map<std::string, std::map<NicNames, unsigned>>;

/// An interrupt, steering map, flow table or number of queues that a policy wants set. Its present
/// value is no part of it.
struct QueueTarget {
    Subject subject;
    Setting wanted;  ///< one CPU for an interrupt; the empty set for steering that is to be off; for a flow
                     ///< table the least count
    std::string nic; ///< interface; "" for the machine's flow table
    std::string policy;
    Reason reason;
    std::string shared_with = {}; ///< of an interrupt line: whom else it serves; ""
    unsigned rank = 0;            ///< among the targets of one line: the lowest decides
    /// The same is wanted of the same subject, for whatever reason.
    [[nodiscard]] bool is_same(const QueueTarget& other) const {
        return subject == other.subject && wanted == other.wanted && nic == other.nic &&
               policy == other.policy && rank == other.rank;
    }
};

/// A kernel thread that does a queue's work (threaded NAPI, irq/N-name): placed as the interrupt would be.
struct QueueThread {
    CpuSet wanted;
    std::string policy;
    Reason reason;
};

/// The lanes of an interface, or of several that serve the same tasks, under a policy: lane i is a core that
/// takes the interrupts of queue i of each of them and, under `full`, the tasks.
struct NicLanes {
    /// An interface's identity, which survives a renaming.
    struct Id {
        unsigned ifindex = 0;
        std::string device; ///< "": a virtual interface
    };
    std::string name; ///< of the first interface
    NicNames nics;    ///< that have these lanes now, in the machine's order
    NicNames spares;  ///< those of them whose traffic another one carries now
    std::vector<Slot> lanes;
    CpuSet near;            ///< the CPUs near the interfaces that the lanes are near to
    std::vector<Id> ids;    ///< of `nics`, in their order
    bool is_guess = false;  ///< as many lanes as queues, because it is not known how many tasks they serve
    CpuSet candidates;      ///< where the lanes were chosen
    std::size_t wanted = 0; ///< how many there were to be, if there are cores enough
    std::size_t queues = 0; ///< of the interface that has most: the first so many lanes have interrupts
    std::vector<unsigned> interrupts; ///< the CPU that takes those of each lane: its first, or with
                                      ///< `separate` another; empty: none of these are this policy's
    /// Where packets for each lane's worker are taken in: as `interrupts`, unless RPS hands them on, or no
    /// queue interrupts this lane and they arrive on another; empty as that is.
    std::vector<unsigned> arrivals;
    /// The CPU of a lane, which is named by its first CPU; no value: none of these are this policy's.
    [[nodiscard]] std::optional<unsigned> interrupt_cpu(unsigned lane) const;
    [[nodiscard]] std::optional<unsigned> arrival_cpu(unsigned lane) const;
};

/// Processes of a policy with `together` stay inside one such group.
struct Group {
    CpuSet cpus;
    std::vector<std::vector<Slot>> distributions; ///< inside the group; as those of the policy
};

/// A resolved policy: one policy, worked out on one machine.
struct ResolvedPolicy {
    const policy::Policy* policy = nullptr;
    policy::Placement placement; ///< its own
    CpuSet allowed;              ///< never empty if active
    CpuSet usable;       ///< of these, what its own placement uses: less where `smt: avoid` leaves CPUs out
    bool active = false; ///< false: it cannot be carried out here; `problems` says why
    std::vector<std::vector<Slot>> distributions; ///< 0: own placement; i + 1: thread rule i
    std::vector<Group> together;                  ///< empty without `together`
    std::vector<NicLanes> nics;                   ///< of irq and full
    std::vector<Slot> all_lanes; ///< lanes of all its interfaces in turn, for tasks served by several or none
    [[nodiscard]] const NicLanes* nic(std::string_view name) const;   ///< that this interface has
    [[nodiscard]] const NicLanes* lanes(std::string_view name) const; ///< of that name
};

/// The CPUs that a policy has for itself.
struct Claim {
    std::string policy;
    CpuSet cpus;
};

/// The groups that `measured` stands for, by latency or else by cache.
struct MeasuredLevel {
    std::vector<CpuSet> groups; ///< they cover all online CPUs
    double ns = 0;              ///< for one way within them; 0: no latencies were measured here
    bool is_foreign = false;    ///< those that are kept are another machine's
};

/// All policies on a machine, with all that can be worked out without knowing the tasks. The policies that
/// compile() got must outlive it. The same input gives the same placements.
struct Placements {
    std::vector<ResolvedPolicy> policies; ///< in the set's order
    CpuSet online;
    std::vector<Claim> claims;       ///< of `exclusive: true` policies that are carried out and not released
    CpuSet claimed;                  ///< all of them together
    std::vector<QueueTarget> queues; ///< numbers of queues first
    std::unordered_map<int, QueueThread> threads; ///< by tid
    std::vector<Problem> problems;
    std::shared_ptr<const CpuLoad> load;   ///< of the interrupts of lanes; each compile() makes another
    std::optional<MeasuredLevel> measured; ///< no value: no policy says `measured`

    [[nodiscard]] const ResolvedPolicy* find(std::string_view policy) const; ///< nullptr: none of that name
    /// The policies that keep others off some of these CPUs; no CPUs: none does.
    [[nodiscard]] KeptOff kept_off(const CpuSet& cpus) const;
};

/// Names of policies that were told to let go: they claim nothing.
using Released = std::set<std::string, std::less<>>;

/// `before`: an earlier result, which may be of other policies. Its lanes are kept where they can be; those
/// of interfaces that need other lanes than before, or may have them elsewhere, may go to cores that are much
/// less busy.
[[nodiscard]] Placements compile(const policy::PolicySet& policies, const machine::Machine& machine,
                                 const NicUsage& usage, const Placements* before = nullptr,
                                 const Released& released = {});

/// True if each place of the policy has all online CPUs of the machine: tasks under it may run where they
/// could without it.
[[nodiscard]] bool restricts_nothing(const ResolvedPolicy& resolved, const CpuSet& online);

/// Names of the interfaces that a policy names or, for `auto`, that serve it; stacked devices resolved to the
/// lower devices that have queues. In the machine's order, without repetition.
[[nodiscard]] NicNames policy_nics(const policy::Policy& policy, const machine::Machine& machine,
                                   const NicUsage& usage);

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"
#include "planner/action.hpp"
#include "planner/cpu_load.hpp"
#include "planner/slots.hpp"
#include "policy/policy.hpp"

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace affinityd::planner {

/// Names of interfaces, none twice.
using NicNames = std::vector<std::string>;

/// Tasks of a policy that read from the same interfaces, by the same rule, in the same cpuset.
struct Readers {
    Readers(NicNames served_by = {}, unsigned of_rule = 0, CpuSet within = {})
        : nics(std::move(served_by)), rule(of_rule), cpuset(std::move(within)) {}
    Readers(std::initializer_list<std::string> served_by) : nics(served_by) {}
    NicNames nics;     ///< that serve each of them; empty: it is not known which
    unsigned rule = 0; ///< 0: the policy's own placement; i + 1: thread rule i
    CpuSet cpuset;     ///< that their control groups leave them; empty: all
    friend auto operator<=>(const Readers&, const Readers&) = default;
};

/// How many readers there are of each policy, counted as tasks are distributed (processes, or threads). Names
/// the interfaces of `nics: auto`, and says which of them share readers.
struct NicUsage : std::map<std::string, std::map<Readers, unsigned>> {
    using map::map;
    /// By policy: ends of pairs (veth) that its readers in other network namespaces are behind.
    std::map<std::string, std::set<std::string>, std::less<>> ends;
    friend bool operator==(const NicUsage&, const NicUsage&) = default;
};

/// An interrupt, steering map, flow table or number of queues that a policy wants set. The present value is
/// no part of it.
struct QueueTarget {
    Subject subject;
    Setting wanted;  ///< one CPU for an interrupt; the empty set for steering that is to be off; for a flow
                     ///< table the least count
    std::string nic; ///< interface; "" for the machine's flow table
    std::string policy;
    Reason reason;
    std::string shared_with = {}; ///< of an interrupt line: whom else it serves; ""
    unsigned rank = 0;            ///< among the targets of one line: the lowest decides
    /// CPUs that a subject which no policy places is kept off; it may have all others of its original,
    /// or `wanted`, all others of the machine, if there are none. Empty: it is placed.
    CpuSet off = {};
    /// The same is wanted of the same subject, for whatever reason.
    [[nodiscard]] bool is_same(const QueueTarget& other) const {
        return subject == other.subject && wanted == other.wanted && nic == other.nic &&
               policy == other.policy && rank == other.rank && off == other.off;
    }
};

/// A kernel thread that does a queue's work (threaded NAPI, irq/N-name): placed as the interrupt would be.
struct QueueThread {
    CpuSet wanted;
    std::string policy;
    Reason reason;
};

/// Seats for readers that are alike, in the order in which they are taken, and where packets for each come
/// in.
struct SeatRow {
    std::string name;        ///< in DistributionId::among
    unsigned rule = 0;       ///< 0: the policy's own placement; i + 1: thread rule i
    NicNames nics;           ///< that they read from, in the machine's order
    CpuSet may;              ///< the CPUs that they may use
    bool is_open = false;    ///< for readers that are not counted yet: each core is a seat
    std::vector<Slot> slots; ///< else one for each reader, as far as there are cores
    /// CPUs on which the packets for each seat are taken in; empty: none of the policy's queues brings any.
    std::vector<CpuSet> arrivals;
};

/// Where one queue of an interface goes.
struct QueuePlace {
    unsigned cpu = 0;  ///< of its interrupt
    CpuSet seat;       ///< CPUs of the seat, or the core, that it belongs to
    std::string row{}; ///< the name of the row of its seat; "": a core without readers
    CpuSet handed_to;  ///< seats to which RPS hands its packets on, with its own; empty: RPS is off
    CpuSet sent_from;  ///< CPUs that send by it (XPS)
};

/// The lanes of an interface, or of several that share readers: seats, and queues that go to these.
struct NicLanes {
    /// An interface's identity, which survives a renaming.
    struct Id {
        unsigned ifindex = 0;
        std::string device; ///< "": a virtual interface
    };
    std::string name;          ///< of the first interface
    NicNames nics;             ///< in the machine's order
    NicNames spares;           ///< those of them whose traffic another one carries now
    std::vector<Id> ids;       ///< of `nics`, in their order
    std::vector<SeatRow> rows; ///< of `full`
    /// By interface, then by place in the order of its queues; none where another policy has placed them.
    std::vector<std::vector<QueuePlace>> queues;
    [[nodiscard]] std::size_t seats() const; ///< of readers that are counted
    /// The seats of readers that are counted, else where queues go: each once, in their order.
    [[nodiscard]] std::vector<CpuSet> cores() const;
    /// The row for a reader; `may`: CPUs of the policy in its cpuset. Null: none of that rule.
    [[nodiscard]] const SeatRow* row(unsigned rule, const NicNames* nics, const CpuSet& may) const;
};

/// Processes of a policy with `together` stay inside one such group.
struct Group {
    CpuSet cpus;
    std::vector<std::vector<Slot>> distributions; ///< inside the group; as those of the policy
};

/// A resolved policy: one policy, worked out on one machine.
struct ResolvedPolicy {
    const policy::Policy* policy = nullptr;
    policy::Placement placement;               ///< its own
    std::vector<policy::Placement> placements; ///< 0: its own; i + 1: that of thread rule i
    CpuSet allowed;                            ///< never empty if active
    CpuSet usable;       ///< of these, what its own placement uses: less where `smt: avoid` leaves CPUs out
    bool active = false; ///< false: it cannot be carried out here; `problems` says why
    std::vector<std::vector<Slot>> distributions; ///< 0: own placement; i + 1: thread rule i
    std::vector<Group> together;                  ///< empty without `together`
    std::vector<CpuSet>
        caches; ///< of full: its CPUs by cache group, for readers whose interface is not known
    CpuSet rps; ///< of `rps`; empty: seats of readers
    std::vector<NicNames> rule_nics; ///< by thread rule, of its `nics`; empty: the policy's
    std::vector<NicLanes> nics;      ///< of irq and full
    /// By rule, as `distributions`: seats of all its interfaces in turn, for readers of which it is not known
    /// which serve them.
    std::vector<std::vector<Slot>> all_seats;
    [[nodiscard]] const NicLanes* nic(std::string_view name) const; ///< that this interface has
    [[nodiscard]] const SeatRow* row(std::string_view name) const;
    /// Tasks under its own placement (0) or a thread rule (i + 1) count as readers: the policy is `full`, and
    /// they are not sent elsewhere, left alone, bound to nothing, or in pairs.
    [[nodiscard]] bool reads(unsigned rule) const;
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
    CpuSet balanced;                 ///< of these, all over which the scheduler balances load
    std::vector<Claim> claims;       ///< of `exclusive: true` policies that are carried out and not released
    CpuSet claimed;                  ///< all of them together
    CpuSet isolated;                 ///< those of them with `isolate: true`
    std::vector<QueueTarget> queues; ///< numbers of queues first
    std::unordered_map<int, QueueThread> threads; ///< by tid
    std::vector<Problem> problems;
    std::shared_ptr<const CpuLoad> load;   ///< of the interrupts of lanes; each compile() makes another
    unsigned number = 0;                   ///< one more than that of the result before
    std::optional<MeasuredLevel> measured; ///< no value: no policy says `measured`

    [[nodiscard]] const ResolvedPolicy* find(std::string_view policy) const; ///< nullptr: none of that name
    /// The policies that keep others off some of these CPUs; no CPUs: none does.
    [[nodiscard]] KeptOff kept_off(const CpuSet& cpus) const;
};

/// Names of policies that were told to let go: they claim nothing.
using Released = std::set<std::string, std::less<>>;

/// `before`: an earlier result, maybe of other policies, whose lanes stay where they can. Lanes of interfaces
/// that need others than before, or may have them elsewhere, may go to cores that are much less busy.
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

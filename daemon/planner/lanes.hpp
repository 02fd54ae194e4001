// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"
#include "netdev/lower.hpp"
#include "planner/placements.hpp"
#include "policy/policy.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::planner {

/// The interfaces of a machine as policies see them: which ones a policy is about, and which of these belong
/// together. Worked out once for all policies; the machine must outlive it.
class Interfaces {
  public:
    explicit Interfaces(const machine::Machine& machine);

    /// Names of the interfaces that a policy names or, for `auto`, that serve it; those of virtual ones are
    /// the physical ones under them. In the machine's order, without repetition.
    [[nodiscard]] NicNames of(const policy::Policy& policy, const NicUsage& usage) const;
    /// Physical interfaces that names or globs name, or that are under those; ports of guests only in full.
    [[nodiscard]] NicNames called(const std::vector<policy::Pattern>& names) const;
    /// Virtual interfaces that a policy names in full, under which there is nothing physical.
    [[nodiscard]] NicNames hollow(const policy::Policy& policy) const;

    /// Interfaces that share readers.
    struct Group {
        std::vector<const netdev::Nic*> nics; ///< in the machine's order, at least one
        std::map<Readers, unsigned> readers;  ///< by interfaces of this group, in the machine's order
    };
    /// `names` by what belongs together: the ports of one virtual interface, and those that serve one task;
    /// under `irq` each is for itself. In the machine's order of the first ones.
    [[nodiscard]] std::vector<Group> together(const NicNames& names, const policy::Policy& policy,
                                              const NicUsage& usage) const;
    /// A bond keeps it for when another fails.
    [[nodiscard]] bool is_spare(const netdev::Nic& nic) const { return spares_.contains(nic.name); }
    /// The CPUs near an interface. The ports of one virtual interface have one side: that of most of those
    /// that carry its traffic, the lowest of equals.
    [[nodiscard]] CpuSet side_of(const netdev::Nic& nic) const;

    [[nodiscard]] const machine::Machine& machine() const { return machine_; }

  private:
    [[nodiscard]] NicNames physical(const NicNames& names) const;
    const machine::Machine& machine_;
    netdev::Stacks stacks_;
    std::set<std::string_view> spares_;
    std::set<NicNames> ports_; ///< of virtual interfaces that have several physical ones under them
};

/// A process under a policy, for its readers to be counted.
struct ReadingProcess {
    const NicNames* nics = nullptr;                ///< that serve it; null: not known
    const CpuSet* cpuset = nullptr;                ///< null: all CPUs
    std::vector<std::optional<std::size_t>> rules; ///< the thread rule of each of its threads
};
/// Counts its readers: threads where these are distributed, else the process, once for each rule.
void count_readers(const policy::Policy& policy, const Interfaces& interfaces, const ReadingProcess& process,
                   NicUsage& into);

/// An interface as the lane rule sees it.
struct LaneNic {
    std::string name;
    NicLanes::Id id;
    CpuSet near;             ///< its side
    std::vector<bool> takes; ///< by place of queue: packets come in there
    bool is_spare = false;   ///< it carries no traffic now
    bool hands_on = true;    ///< it has maps of RPS
};

/// The work that compile() knows of, before it knows any task.
struct LaneLoad {
    CpuLoad interrupts; ///< of queues
    CpuLoad readers;    ///< of seats
    CpuLoad dealt;      ///< of those that this compile() has dealt, and not only kept so far
    CpuLoad expected;   ///< both, and that of policies, each spread over the CPUs that it may use
    std::map<std::string_view, std::string> placed = {}; ///< interfaces whose queues have a place, by policy
    /// The seats and queues that a policy is about to keep count, so that no other takes them.
    void add_kept(const NicLanes& lanes);
    /// The same in parts; `amount` is negative when they are dealt anew.
    void add_seats(const SeatRow& row, Weight amount);
    void add_queues(const NicLanes& lanes, Weight amount);
};

/// The subject of the lane rule.
struct LaneQuestion {
    const ResolvedPolicy& resolved;
    const topology::Topology& topology;
    std::vector<LaneNic> nics;                   ///< at least one
    const std::map<Readers, unsigned>& readers;  ///< as Interfaces::Group has them
    std::map<CpuSet, std::size_t> all_readers{}; ///< of the policy, by the CPUs that they may use
    std::vector<CpuSet> others{};     ///< sides of the policy's interfaces that are not among `nics`
    const NicLanes* before = nullptr; ///< what these interfaces had until now; null: nothing
    bool serves_tasks = false;        ///< under `full`
    bool has_queues = true;           ///< false: another policy has placed them
};

/// The lane rule: where readers sit, and where the queues of their interfaces go. Pure; each sentence is a
/// property in tests/planner/lane_rule_test.cpp.
///
///  1. Each reader has a seat, inside the policy's CPUs and its own cpuset. Seats are dealt by core: those
///     that no other reader has first, of these the nearest to its interfaces, one reader a core as long as
///     there are cores. Readers of several interfaces take the sides of these in turn. Where a policy has
///     more readers than cores, those of each kind share their part of the cores.
///  2. Queues go to CPUs inside seats on the side of their interface. Readers differ by one queue at most.
///     In a wide seat (a cache group) they spread over its cores, one a core first.
///  3. With `separate`, an interrupt has another core of its seat's cache group.
///  4. A reader without a queue is handed packets by RPS from one queue, the nearest; other queues have RPS
///     off. Each CPU of a seat sends by a queue of its own seat, else by one that it shares (XPS).
///  5. Without readers, queues go to the cores of the policy's CPUs, the nearest first, one a core, but not
///     to cores that are nearer to another of its interfaces. A single receive queue is spread by RPS over
///     the cores near it, unless the policy places readers as well.
///  6. Seats and queues of before stay, as far as the above allows it.
///
/// Source: Foong, Fung, Newell, User-directed Processor Affinity; Documentation/networking/scaling.rst.
[[nodiscard]] NicLanes deal_lanes(const LaneQuestion& question, LaneLoad& load);

/// Deals the lanes of a policy's interfaces, and wants what follows from them: masks of interrupts, steering
/// maps, flow tables, the CPUs of threads that do the work of queues.
void add_lanes(ResolvedPolicy& resolved, const Interfaces& interfaces,
               const std::vector<Interfaces::Group>& groups, const ResolvedPolicy* before, LaneLoad& load,
               Placements& into);

/// Packets that a reader in another network namespace sends stay on its CPU: the ends of pairs that they
/// leave it by have RPS off.
void add_ends(const ResolvedPolicy& resolved, const machine::Machine& machine, const NicUsage& usage,
              LaneLoad& load, Placements& into);

/// Lanes of an earlier result that the group keeps: those with which it has most devices in common, by
/// whatever name they go now. Null: none.
[[nodiscard]] const NicLanes* earlier_lanes(const Interfaces::Group& group, const ResolvedPolicy* before);

/// Why a policy cannot place interrupts of an interface as it would: none of them is known, labels
/// that no form fits, a controller that refuses masks.
[[nodiscard]] std::vector<Problem>
interrupt_problems(const ResolvedPolicy& resolved, const machine::Machine& machine, const netdev::Nic& nic);

/// Says where `separate` is not kept, once all lanes are there.
void tell_of_mixed(const topology::Topology& topology, Placements& into);

/// An interrupt line may serve several interfaces, and devices that are none. The line has one mask: among
/// the targets of such a line, that of the first policy counts whose interface has a handler on it now, and
/// the others say whom they give way to.
void settle_shared_lines(const machine::Machine& machine, Placements& into);

/// Targets for what no policy places: interrupts, RPS, and the kernel's own masks are kept off the CPUs of
/// `isolate: true`.
void keep_off_isolated(const machine::Machine& machine, Placements& into);

/// The target that decides what this one's subject is set to: itself, but on a line that serves others, too.
/// `is_released` says which policies are let go: they decide nothing.
[[nodiscard]] const QueueTarget& decider(const Placements& placements, const QueueTarget& target,
                                         const std::function<bool(std::string_view policy)>& is_released);

} // namespace affinityd::planner

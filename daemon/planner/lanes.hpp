// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"
#include "netdev/lower.hpp"
#include "planner/placements.hpp"
#include "policy/policy.hpp"

#include <functional>
#include <map>
#include <set>
#include <span>
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
    /// Virtual interfaces that a policy names in full, under which there is nothing physical.
    [[nodiscard]] NicNames hollow(const policy::Policy& policy) const;

    /// Interfaces whose traffic may be the same task's.
    struct Group {
        std::vector<const netdev::Nic*> nics; ///< in the machine's order, at least one
        unsigned tasks = 0;                   ///< that they serve; 0: not known
    };
    /// `names` by what belongs together: the ports of one virtual interface, and those that serve one task;
    /// under `irq` each is for itself. In the machine's order of the first ones.
    [[nodiscard]] std::vector<Group> together(const NicNames& names, const policy::Policy& policy,
                                              const NicUsage& usage) const;
    /// A bond keeps it for when another fails.
    [[nodiscard]] bool is_spare(const netdev::Nic& nic) const { return spares_.contains(nic.name); }

    [[nodiscard]] const machine::Machine& machine() const { return machine_; }

  private:
    [[nodiscard]] NicNames physical(const NicNames& names) const;
    const machine::Machine& machine_;
    netdev::Stacks stacks_;
    std::set<std::string_view> spares_;
    std::set<NicNames> ports_; ///< of virtual interfaces that have several physical ones under them
};

/// Interfaces that are about to get lanes, all the same ones.
struct LaneGroup {
    Interfaces::Group interfaces;
    const NicLanes* before; ///< what they had until now; never null, but without lanes if there are none
    /// CPUs with the work of one: of each lane, and of its interrupts, if these are elsewhere.
    [[nodiscard]] std::vector<unsigned> kept_work() const;
};

/// The groups of a policy's interfaces.
///
/// `before`: the same policy as it was placed last, nullptr: never. A group keeps the lanes of the one with
/// which it shares most devices, by whatever name they go now; each is kept once. Lanes that were a guess,
/// because it was not known how many tasks would be served, are not kept once that is known.
[[nodiscard]] std::vector<LaneGroup> lane_groups(const policy::Policy& policy, const Interfaces& interfaces,
                                                 const NicNames& nics, const NicUsage& usage,
                                                 const ResolvedPolicy* before);

/// The work that compile() knows of, before it knows any task.
struct LaneLoad {
    CpuLoad interrupts; ///< of lanes
    CpuLoad expected;   ///< the same, and that of policies, each spread over the CPUs that it may use
    CpuLoad queues;     ///< of the CPUs that queues interrupt: RPS takes the rest of the work to all lanes
    std::map<std::string_view, std::string> placed =
        {};             ///< interfaces whose queues have lanes, and of which policy
    CpuLoad lanes = {}; ///< of lanes and their interrupts alone: those chosen, and those about to be kept
    void add_tasks(unsigned cpu) {
        expected.add({cpu}, one_cpu);
        lanes.add({cpu}, one_cpu);
    }
    void add_interrupts(unsigned cpu) {
        interrupts.add({cpu}, one_cpu);
        add_tasks(cpu);
    }
    /// Counts the CPUs that the group keeps, so that no other takes them; `amount` is negative where its
    /// lanes are chosen.
    void add_kept(const LaneGroup& group, Weight amount);
};

/// Works out the full-affinity half of a policy: for each interface its lanes (cores of `allowed` near the
/// NIC, least loaded first, SMT siblings last; all policies and interfaces count), then for each data queue
/// its interrupt, its NAPI or irq thread and its steering maps. Under `full`, interfaces that serve the same
/// tasks (a bond's ports) share their lanes: a task has the interrupts of all of them on its core.
///
/// Queue k (in order of queue numbers) goes to lane k modulo lanes; queues without interrupts of their own go
/// to the lanes of those that have some, in turn. Under `full` there are as many lanes as
/// tasks are served, at most one per core: NICs that serve one process bring all their queues to that
/// process. Under `irq` there are as many lanes as data queues, at most one per core. Transmit queues get the
/// CPUs of their lanes (XPS); receive queues are steered in software (RPS) only where there are more lanes
/// than queues, and off otherwise, because left-over maps would carry packets away from the lane. Model:
/// Foong, Fung, Newell; kernel: Documentation/networking/scaling.rst.
///
/// An interface whose queues another policy has placed already gets lanes for this policy's tasks alone.
///
/// The lanes that `groups` keep are counted in `load` already.
void add_lanes(ResolvedPolicy& resolved, const Interfaces& interfaces, const std::vector<LaneGroup>& groups,
               LaneLoad& load, Placements& into);

/// Why a policy cannot place interrupts of an interface as it would: none of them is known, labels
/// that no form fits, a controller that refuses masks, fewer cores than it might have.
[[nodiscard]] std::vector<Problem>
interrupt_problems(const ResolvedPolicy& resolved, const machine::Machine& machine, const netdev::Nic& nic);

/// Says where `separate` is not kept, once all lanes are there.
void tell_of_mixed(const topology::Topology& topology, Placements& into);

/// One interrupt line may serve several interfaces, and devices that are none. It has one mask: among the
/// targets of such a line, that of the first policy counts whose interface has a handler on it now, and the
/// others say whom they give way to.
void settle_shared_lines(const machine::Machine& machine, Placements& into);

/// The target that decides what this one's subject is set to: itself, but on a line that serves others, too.
/// `is_released` says which policies are let go: they decide nothing.
[[nodiscard]] const QueueTarget& decider(const Placements& placements, const QueueTarget& target,
                                         const std::function<bool(std::string_view policy)>& is_released);

/// Where the lanes of interfaces that share them belong.
struct LaneHome {
    CpuSet near;   ///< CPUs of the node of most of them, of those that carry traffic: the lowest of equals
    CpuSet others; ///< CPUs near the others of those: for lanes that have no core of their own there
    CpuSet first;  ///< what the policy may use of `near`; all that it may use if that is none of them
    CpuSet then;   ///< and what it may use of `others`
    CpuSet rest;   ///< and of all others: for tasks that have no core of their own near
    bool is_of_spares = false; ///< the policy has CPUs near interfaces that are spares, and near no others
};
[[nodiscard]] LaneHome lane_home(const ResolvedPolicy& resolved, const Interfaces& interfaces,
                                 std::span<const netdev::Nic* const> nics);

/// All CPUs of the cores of these lanes.
[[nodiscard]] CpuSet cores_of(const topology::Topology& topology, std::span<const Slot> lanes);

/// How many lanes there are to be.
struct LaneDemand {
    std::size_t lanes = 0;
    std::size_t queues = 0;     ///< of the interface that has most: the first so many lanes get interrupts
    std::span<const Slot> kept; ///< lanes that the interfaces have had until now: those come first, in order
    bool may_move = false;      ///< unless another core has much less load
    std::span<const unsigned> kept_interrupts = {}; ///< CPUs that took those of the kept lanes
    bool may_be_far = false;                        ///< a core far away is better than to share one
};

/// Up to as many lanes there, the nearest first: those that are kept, then cores with the least load. First
/// those that get interrupts, on cores with the fewest of others; else in the machine's order.
[[nodiscard]] std::vector<Slot> choose_lanes(const ResolvedPolicy& resolved, const machine::Machine& machine,
                                             const LaneHome& home, const LaneDemand& demand,
                                             const LaneLoad& load);

/// The CPUs that take the interrupts of each lane: the lane's own, or with `separate` others in its cache
/// group: that which took them until now, else those with the least load. They are counted in `load`; with
/// `separate` only those of the lanes where a queue interrupts have such CPUs.
[[nodiscard]] std::vector<unsigned> interrupt_cpus(const ResolvedPolicy& resolved,
                                                   const machine::Machine& machine,
                                                   std::span<const Slot> lanes, const LaneDemand& demand,
                                                   LaneLoad& load);

} // namespace affinityd::planner

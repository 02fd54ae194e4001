// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/interfaces.hpp"
#include "planner/placements.hpp"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::planner {

/// The work that compile() knows of, before it knows any task.
struct LaneLoad {
    CpuLoad interrupts; ///< of lanes
    CpuLoad expected;   ///< the same, and that of policies, each spread over the CPUs that it may use
    CpuLoad queues;     ///< of the CPUs that queues interrupt: RPS takes the rest of the work to all lanes
    std::map<std::string_view, std::string> placed =
        {};                 ///< interfaces whose queues have lanes, and of which policy
    CpuLoad lanes = {};     ///< of lanes and their interrupts alone: those chosen, and those about to be kept
    CpuSet of_workers = {}; ///< all CPUs of the cores of lanes, as far as they are known to serve tasks
    /// Lanes with `separate`: the interrupts of the first so many are to be on the core of no worker.
    struct Apart {
        std::string policy;
        NicLanes lanes;
        std::size_t queues = 0;
    };
    std::vector<Apart> apart = {};
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

/// Whatever of an interface's interrupts a policy cannot place as it would: none of them is known, labels
/// that no form fits, a controller that refuses masks, fewer cores than it might have.
[[nodiscard]] std::vector<Problem>
interrupt_problems(const ResolvedPolicy& resolved, const machine::Machine& machine, const netdev::Nic& nic);

/// Says where `separate` is not kept, once all lanes are there.
void tell_of_mixed(const topology::Topology& topology, const LaneLoad& load, Placements& into);

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

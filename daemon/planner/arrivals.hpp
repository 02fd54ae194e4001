// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "planner/assignments.hpp"
#include "planner/placements.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::planner {

/// Why a listener is left to the kernel's own choice.
enum class NotSteered : std::uint8_t {
    single,       ///< it is the only one of its address
    shared,       ///< several tasks take connections from it, on several lanes
    not_seen,     ///< no task was seen to take its connections yet
    settling,     ///< its worker has no place yet
    no_lane,      ///< its worker has no lane
    of_others,    ///< packets for its worker's lane come to queues that another policy has placed
    released,     ///< its worker was let go by hand
    own_program,  ///< its program chooses by a reuseport program of its own
    bound_device, ///< it is bound to an interface
    datagrams,    ///< it is a socket of UDP, and the policy does not ask for it by `steer: accept`
    no_event,     ///< it is a socket of UDP, and the kernel does not tell who reads from it
    too_many,     ///< there is no room for more
    refused       ///< the kernel does not take it in, or does not let the daemon steer
};
[[nodiscard]] std::string_view to_string(NotSteered why);
using NotSteeredCounts = std::map<NotSteered, std::size_t>;

/// True for what may change by itself soon.
[[nodiscard]] bool is_undecided(NotSteered why);

/// The listeners of one policy.
struct ListenerPlan {
    std::size_t steered = 0; ///< they get the connections that arrive on their workers' lanes
    NotSteeredCounts left{}; ///< how many are left alone
};

/// True if a policy keeps tasks on single CPUs or cores of several lanes while nothing brings their packets
/// there, also as `steering: false` forbids what `steer: flows` needs: those are read elsewhere than they
/// arrive then, but for one in as many as there are lanes, and the scheduler may not follow them. `plan`: of
/// its listeners; nullptr: it does not steer them, or nothing is known yet.
[[nodiscard]] bool is_pinned_only(const ResolvedPolicy& resolved, const ListenerPlan* plan);
/// The note about such a policy.
[[nodiscard]] std::string pinned_note(const ResolvedPolicy& resolved);

/// True if a policy says `steer: flows` and has queues, but none of them has a table of flows (RFS): the
/// kernel has none, or not in this network namespace.
[[nodiscard]] bool lacks_flow_tables(const ResolvedPolicy& resolved, const Placements& placements);

/// Where packets for the lane are taken in in which a task (or its process as a whole) sits.
[[nodiscard]] std::optional<unsigned> arrival_cpu(const ResolvedPolicy& resolved,
                                                  const Assignments& assignments, const TaskId& task);
/// Why arrival_cpu() has no value for tasks of a policy.
[[nodiscard]] NotSteered why_no_arrival(const ResolvedPolicy& resolved);

/// A worker that changes over to another lane: for Assignments::move().
struct WorkerMove {
    TaskId worker;
    unsigned table = 0, from = 0;
    Slot to;
};

/// Workers with listeners of their own get what arrives on their lanes, and a lane without a worker leaves
/// what arrives there to all of them by a hash. So each lane on which packets arrive gets one, from lanes
/// that have several: it is dealt by the work that tasks have, and a server's master, or a worker that ends,
/// has a lane, too. `workers`: of one server, each once; those that a cpuset keeps from some lanes stay. The
/// lane that has most gives first, and of its workers the last. Pure.
[[nodiscard]] std::vector<WorkerMove> spread_workers(const ResolvedPolicy& resolved,
                                                     const Placements& placements,
                                                     const Assignments& assignments,
                                                     std::span<const TaskId> workers);

/// Packets for a task that were seen: how often, by the CPU where they arrived.
using Arrivals = std::map<unsigned, std::uint64_t>;

/// How a task under `steer: tasks` stands to its packets.
enum class AtArrivals : std::uint8_t {
    here,    ///< most of them arrive on its lane
    unknown, ///< too few were seen
    mixed,   ///< no lane has a clear majority of them
    no_lane, ///< they arrive where the policy has no lane, or the task has no slot on a lane
    crowded, ///< their lane has more than its share of the work
    moves    ///< it changes over to their lane
};
[[nodiscard]] std::string_view to_string(AtArrivals state);

/// The decision about a task.
struct TaskSlot {
    AtArrivals state = AtArrivals::unknown;
    struct Move {
        unsigned table = 0, from = 0; ///< for Assignments::move()
        Slot to;
    };
    std::optional<Move> move{}; ///< of `moves`
};

/// A server with a task for each connection cannot choose where its packets arrive: the task goes where they
/// do. The task moves if more than two thirds of them, and of at least two, arrive on one other lane of its
/// policy, unless that lane would have more than twice its share of the work of all lanes (of two lanes: more
/// than three quarters of it), more than three quarters of a CPU, and more than the lane that the task leaves
/// has. Pure.
[[nodiscard]] TaskSlot slot_at_arrivals(const ResolvedPolicy& resolved, const Placements& placements,
                                        const Assignments& assignments, const TaskId& task,
                                        const Arrivals& arrivals);

/// The same for a task that says itself on which CPU its packets arrive, within the distribution where it has
/// a slot (`table`, of Assignments::number()), be that one of lanes or not. `here`, `moves`, `crowded`, or
/// `no_lane`. Pure.
[[nodiscard]] TaskSlot slot_with_cpu(const ResolvedPolicy& resolved, const Placements& placements,
                                     const Assignments& assignments, const TaskId& task, unsigned table,
                                     unsigned cpu);

} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/accept_sockets.hpp"
#include "planner/accept_shares.hpp"
#include "planner/action.hpp"
#include "planner/assignments.hpp"
#include "planner/placements.hpp"
#include "planner/undo.hpp"

#include <cstddef>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::planner {

/// A listener that is to get the connections of one CPU.
struct ListenerTarget {
    ListenerCpu subject;
    Setting wanted; ///< one CPU: where packets for its worker's lane are taken in
    std::string policy;
    int thread = 0;                     ///< the worker
    std::vector<std::uint8_t> bound_to; ///< as inventory::AcceptSocket: whose connections it shares
    bool is_avoided = false;            ///< it cannot be looked at for a while, and is as it was
    friend bool operator==(const ListenerTarget&, const ListenerTarget&) = default;
};

/// Why a listener is left as it is.
enum class NotSteered : std::uint8_t {
    no_group,    ///< the program does not use SO_REUSEPORT there: workers share it, or others take no part
    single,      ///< it is the only one of its address
    shared,      ///< several tasks take connections from it, on several lanes
    not_seen,    ///< nobody was seen to wait for its connections yet
    settling,    ///< its worker has no place yet
    no_lane,     ///< its worker has no lane
    of_others,   ///< packets for its worker's lane come to queues that another policy has placed
    released,    ///< its worker was let go by hand
    moved,       ///< somebody else has moved its worker
    set_already, ///< somebody else has told it a CPU
    others,      ///< one of its address is not steered, and would get few connections if this one were
    unknown,     ///< who else listens on its address is not known now
    unattended,  ///< nobody was seen to take from another one of its address
    too_many,    ///< its process has so many that it was not looked at
    refused,     ///< the kernel does not let us reach it
    unfair       ///< one worker got much more than its share
};
[[nodiscard]] std::string_view to_string(NotSteered why);
using NotSteeredCounts = std::map<NotSteered, std::size_t>;

/// What becomes of the listeners of one policy.
struct ListenerPlan {
    std::vector<ListenerTarget> targets;
    NotSteeredCounts left;                    ///< how many are left as they are
    std::map<int, NotSteeredCounts> left_of;  ///< of them, by process; a shared one counts for each
    std::vector<ListenerCpu> undecided;       ///< nothing is known of them now: they stay as they are
    std::vector<ListenerCpu> decided_against; ///< if that lasts, they are put back
    std::map<int, std::size_t> still_told;    ///< how many of those have a CPU from us as yet, by process
    /// Inodes of listeners that a process of the policy has open, on the address of others, and from which
    /// nobody was seen to take connections: he may be busy, or do it by select(2) or io_uring.
    std::set<std::uint64_t> unattended{};
    bool are_some_avoided = false; ///< processes that cannot be looked at for a while
    /// Notes so many of a process.
    void leave(NotSteered why, int process, std::size_t count = 1);
};

/// The processes of a policy that may take connections.
using AcceptProcesses = std::span<const inventory::AcceptSockets* const>;

[[nodiscard]] ListenerCpu subject_of(const inventory::AcceptSockets& process,
                                     const inventory::AcceptSocket& socket);

/// On which CPU connections arrive that are for a thread of a process; unexpected: it has no lane, or
/// settles.
using ArrivalCpu = std::function<std::expected<unsigned, NotSteered>(const TaskId& process, int thread)>;

/// Decides about the listeners of one policy under `steer: accept`. Each worker with a listener of its own
/// among several of one address gets what arrives on its lane. Pure. The kernel prefers a listener with the
/// CPU on which it handles the first packet, and goes by a hash if there is none (socket(7),
/// reuseport_select_sock in net/core/sock_reuseport.c): of one address all are steered, or none, as one that
/// is not would get few connections, or none, beside those that are. Where not all is known, nobody new is
/// steered, and those that are stay so. `given_up`: inodes of listeners that were unattended for so long that
/// they count as somebody else's.
[[nodiscard]] ListenerPlan plan_listeners(const std::string& policy, AcceptProcesses processes,
                                          const ArrivalCpu& arrives, const UndoLookup& undo,
                                          const std::set<std::uint64_t>& given_up = {});

/// True for a worker to which a CPU's connections come, and to no other of its address. `thread`: the
/// worker's.
[[nodiscard]] bool has_own_arrivals(std::span<const ListenerTarget> targets, int thread);

/// True if a policy keeps tasks on single CPUs or cores of several lanes while nothing brings their packets
/// there, also as `steering: false` forbids what `steer: flows` needs: those are read elsewhere than they
/// arrive then, but for one in as many as there are lanes, and the scheduler may not follow them. `plan`: of
/// its listeners; nullptr: it does not steer them, or nothing is known yet.
[[nodiscard]] bool is_pinned_only(const ResolvedPolicy& resolved, const ListenerPlan* plan);
/// What is to be said of such a policy.
[[nodiscard]] std::string pinned_note(const ResolvedPolicy& resolved);
/// What is to be said where packets for all workers of an address arrive on one CPU, so that steering cannot
/// choose among them, as where threads of one process share its lane; "": nothing.
[[nodiscard]] std::string alike_note(const ResolvedPolicy& resolved, const ListenerPlan* plan);

/// True if a policy says `steer: flows` and has queues, but none of them has a table of flows (RFS): the
/// kernel has none, or not in this network namespace.
[[nodiscard]] bool lacks_flow_tables(const ResolvedPolicy& resolved, const Placements& placements);

/// By address, as inventory::AcceptSocket::bound_to.
using ByAddress = std::map<std::vector<std::uint8_t>, AcceptShares::Counts>;
/// How many connections came to the listeners with targets (`accepted`), or how much their workers had to do
/// (`work`), for each address with several of these: who shares the others' connections is not ours to say.
[[nodiscard]] ByAddress count_accepted(
    AcceptProcesses processes, std::span<const ListenerTarget> targets,
    std::optional<std::size_t> inventory::AcceptSocket::*what = &inventory::AcceptSocket::accepted);
/// From which `accepted` of those that listen there was estimated.
[[nodiscard]] inventory::PortSample sample_at(AcceptProcesses processes,
                                              const std::vector<std::uint8_t>& address);
/// AcceptSockets::opened of a process that listens there.
[[nodiscard]] std::optional<std::uint64_t> opened_around(AcceptProcesses processes,
                                                         const std::vector<std::uint8_t>& address);

/// Where packets for the lane are taken in in which a task (or its process as a whole) sits.
[[nodiscard]] std::optional<unsigned> arrival_cpu(const ResolvedPolicy& resolved,
                                                  const Assignments& assignments, const TaskId& task);
/// Why arrival_cpu() has no value for tasks of a policy.
[[nodiscard]] NotSteered why_no_arrival(const ResolvedPolicy& resolved);

} // namespace affinityd::planner

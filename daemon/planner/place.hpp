// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/task.hpp"
#include "planner/assignments.hpp"
#include "planner/matcher.hpp"
#include "planner/placements.hpp"

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::planner {

/// A process, as the plan of its threads needs it.
struct ProcessView {
    TaskId id;                                      ///< its main thread
    std::optional<std::size_t> policy;              ///< index into the set; no value: no policy wants it
    const std::vector<std::string>* nics = nullptr; ///< interfaces that serve it; null: not known
    const CpuSet* cpuset = nullptr; ///< CPUs that its cgroup lets it have; null: all, or not known
    /// True for threads whose masks the kernel may have widened since they were last looked at; null: none.
    const std::function<bool(const TaskId&)>* may_be_reset = nullptr;
    bool is_settling = false;   ///< new: its threads may use all CPUs of the policy until it has settled
    TaskId parent = {};         ///< its parent, if under the same policy; else {}
    bool is_elsewhere = false;  ///< no interface of this network namespace serves it: it belongs to no lane
    bool reads_nothing = false; ///< it holds listeners that others take connections from: it is no reader
    /// CPUs where it finds no memory: those of cramped(); null: not known. Asked under `near: room` only.
    const std::function<CpuSet()>* cramped = nullptr;
};

/// A thread of the process.
struct ThreadView {
    const inventory::Thread& thread;
    unsigned index = 0; ///< place among the process's threads by tid, 0 = main thread
    /// The kernel may have widened its mask as far as it goes (kernels before 6.2, when CPUs or cpusets
    /// change).
    bool may_be_reset = false;
    /// The mask that the thread had in place without our doing, and so without a record; null: none.
    const CpuSet* found = nullptr;
    const Joined* joined = nullptr; ///< what it has asked for; null: nothing
};

/// Where a thread is to be.
struct Target {
    CpuSet mask;                 ///< never empty, online CPUs only
    std::size_t policy = 0;      ///< index into the set
    DistributionId distribution; ///< `whole`: none; the task has no slot yet
    TaskId unit;                 ///< what has the slot: the thread, or its process
    bool is_own = false;         ///< it is the thread
    CpuSet slot;
    bool is_unserved = false; ///< a reader whose interface is not known: it may use its whole cache group
};

/// Why a thread under a policy has no place.
enum class NoPlace : std::uint8_t {
    model,    ///< the policy is not about tasks: affinity none or irq
    inactive, ///< the policy cannot be carried out on this machine
    leave,    ///< a thread rule says leave
    outside,  ///< none of the places that it could have is within its cpuset
};

/// Where a thread of a process under a policy belongs.
[[nodiscard]] std::expected<Target, NoPlace> place(const Placements& placements, Assignments& assignments,
                                                   const ProcessView& process, const ThreadView& thread);

/// Why it belongs there.
[[nodiscard]] std::string reason_of(const Placements& placements, const Target& target);

/// The slots of a distribution, in its order; null: these placements have none of that name.
[[nodiscard]] const std::vector<Slot>* slots_of(const Placements& placements,
                                                const DistributionId& distribution);

/// The CPUs of NUMA nodes that have no memory for a process: less is free than the process has, while another
/// node has that; or less than half of what is free on the roomiest. `room`: bytes that are free, by place in
/// topology.nodes; no value: not known.
[[nodiscard]] CpuSet cramped(const topology::Topology& topology,
                             const std::vector<std::optional<std::uint64_t>>& room, std::uint64_t resident);

/// True if this placement distributes threads rather than processes (a `spread` is given).
[[nodiscard]] bool distributes_threads(const policy::Placement& placement);

} // namespace affinityd::planner

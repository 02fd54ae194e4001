// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/sharers/wakes.hpp"
#include "host/root.hpp"

#include <optional>
#include <string_view>

namespace affinityctl {

// Where NUMA hinting is on, the kernel takes pages away from tasks now and then, to see by the faults who
// touches them, and puts tasks that touched the same pages into a group (struct numa_group,
// kernel/sched/fair.c). That says that threads have shared memory, once, not how much or whether they still
// do; and within one process the groups only ever grow.

enum class NumaHinting {
    off,      ///< one NUMA node, or kernel.numa_balancing is 0: nothing is known
    hidden,   ///< it is on, but /proc/PID/task/TID/sched is not there (a kernel without CONFIG_SCHED_DEBUG)
    has_told, ///< WokenThread::pages_group is filled in
};

/// Reads the groups of the threads that live. More than 1,024 are not asked: each answer is long.
[[nodiscard]] NumaHinting read_numa_groups(const affinityd::host::Root& root, int pid, Wakes& wakes);

/// The group in /proc/PID/task/TID/sched: no value: the text has none; 0: the thread is in none.
[[nodiscard]] std::optional<unsigned> numa_group_in(std::string_view text);

} // namespace affinityctl

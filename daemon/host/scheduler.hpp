// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "host/fd.hpp"

#include <cstdint>
#include <expected>
#include <vector>

namespace affinityd::host {

/// The CPUs a task may run on now (Cpus_allowed: its own mask cut by its cpuset), sched_getaffinity(2) with a
/// buffer that grows until the kernel is content, so that more than 1,024 CPUs work. Error value: errno
/// (ESRCH: gone).
[[nodiscard]] std::expected<CpuSet, int> get_affinity(int tid);

/// Asks for exactly these CPUs: 0 or errno. ESRCH gone; EINVAL no CPU left after the cpuset, or a protected
/// kernel thread; EPERM not allowed; EBUSY SCHED_DEADLINE outside its root domain. Source:
/// sched_setaffinity(2), kernel/sched/syscalls.c.
[[nodiscard]] int set_affinity(int tid, const CpuSet& cpus);

/// Asks the scheduler to run this thread soon after it wakes, on a busy machine too: a slice of 0.1 ms (Linux
/// 6.12 on) and nice -10. Not inherited by children. 0 or errno: a wish, not a need. sched_setattr(2).
int prefer_low_latency();

/// Asks the scheduler to let others go before this thread, for one that works beside the loop: slices of
/// 0.1 ms, and no preemption when it wakes (SCHED_BATCH). The thread has its share all the same. 0 or errno:
/// a wish, not a need. sched_setattr(2).
int give_way();

/// Moves the pages that a process has on nodes `from` to nodes `to`; migrate_pages(2). The call takes as long
/// as copying them does. Nodes below 1024 count. The number of pages that could not be moved, or an errno
/// value (ESRCH: gone; EPERM; EINVAL: no node of `to` is there).
[[nodiscard]] std::expected<long, int> migrate_pages(int pid, const std::vector<unsigned>& from,
                                                     const std::vector<unsigned>& to);

/// Moves the pages of a process from one address to another to nodes in turn, each `part` bytes of addresses
/// to the next, as far as they are there and no other process has them, too; move_pages(2). The number of
/// pages that could not be moved, or an errno value (ESRCH: gone).
[[nodiscard]] std::expected<long, int> move_pages(int pid, std::uint64_t from, std::uint64_t to,
                                                  std::uint64_t part, const std::vector<unsigned>& nodes);

} // namespace affinityd::host

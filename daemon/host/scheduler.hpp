// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"

#include <expected>

namespace affinityd::host {

/// The CPUs a task may run on now (Cpus_allowed: its own mask cut by its cpuset), sched_getaffinity(2) with a
/// buffer that grows until the kernel is content, so that more than 1,024 CPUs work. Error value: errno
/// (ESRCH: gone).
[[nodiscard]] std::expected<CpuSet, int> get_affinity(int tid);

/// Asks for exactly these CPUs: 0 or errno. ESRCH gone; EINVAL no CPU left after the cpuset, or a protected
/// kernel thread; EPERM not allowed; EBUSY SCHED_DEADLINE outside its root domain. Source:
/// sched_setaffinity(2), kernel/sched/syscalls.c.
[[nodiscard]] int set_affinity(int tid, const CpuSet& cpus);

} // namespace affinityd::host

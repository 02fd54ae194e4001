// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "host/root.hpp"
#include "inventory/task.hpp"

#include <optional>
#include <vector>

namespace affinityd::inventory {

/// One thread of a process; no value: it is gone. An Error: it cannot be read (EMFILE), so nothing is known
/// of it. On this machine `allowed` is what sched_getaffinity(2) answers, so without offline CPUs. In a
/// recording it is Cpus_allowed_list.
[[nodiscard]] Result<std::optional<Thread>> read_thread(const host::Root& root, int pid, int tid);

/// All threads of a process, the main thread first; empty if the process is gone. In one go: not for the
/// event loop, where a process may have thousands.
[[nodiscard]] Result<std::vector<Thread>> read_threads(const host::Root& root, int pid);

/// The present mask with offline CPUs (Cpus_allowed_list of /proc/PID/task/TID/status): what has to be put
/// back later.
[[nodiscard]] std::optional<CpuSet> read_allowed(const host::Root& root, int pid, int tid);

/// True if the process, by its main thread's id, has a thread that runs. A main thread may end before the
/// others, and when one of these runs another program, it takes over the main thread's number and start time.
[[nodiscard]] bool lives_on(const host::Root& root, const TaskId& process);

/// Parent of a process, 0 for none; no value if the process is gone.
[[nodiscard]] std::optional<int> read_parent(const host::Root& root, int pid);

/// Parent, grandparent, ... of a process whose parent is `parent`: at most 64, which also ends a loop in a
/// recording.
[[nodiscard]] std::vector<int> read_ancestors(const host::Root& root, int parent);

/// The user who started a process, also where it runs with another one's rights (Uid of its status file, the
/// first number); no value if it is gone.
[[nodiscard]] std::optional<unsigned> read_real_user(const host::Root& root, int pid);

/// The process that a thread belongs to (Tgid of its status file); no value if the thread is gone.
[[nodiscard]] std::optional<int> read_process_id(const host::Root& root, int tid);

} // namespace affinityd::inventory

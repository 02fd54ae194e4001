// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "inventory/fact_sources.hpp"
#include "inventory/task.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace affinityd::inventory {

/// One process with its threads, as they were when it was read.
struct Process {
    std::shared_ptr<ProcessFacts> facts; ///< never null
    std::vector<Thread> threads; ///< by tid, the main thread first; without threads that have already ended
};

/// In all functions below: `root` and `sources` must outlive what they return, because dear facts are read on
/// first ask. Without `sources`, user names, group names and sockets are looked up anew for each process that
/// is asked.

/// Process ids in ascending order. On this machine through libproc2, in a recording from its directory.
[[nodiscard]] Result<std::vector<int>> list_pids(const host::Root& root);

/// The process with all its threads: the list of threads is read again until it shows no new one (at most 16
/// times, for a process that makes threads faster than they can be read). Nothing: gone, or ended and not yet
/// collected.
[[nodiscard]] std::optional<Process> read_process(const host::Root& root, int pid,
                                                  FactSources* sources = nullptr);

/// One thread of it; nothing: gone. On this machine `allowed` is what sched_getaffinity(2) answers: without
/// CPUs that are offline. In a recording it is Cpus_allowed_list.
[[nodiscard]] std::optional<Thread> read_thread(const host::Root& root, int pid, int tid);

/// The present mask with offline CPUs (Cpus_allowed_list of /proc/PID/task/TID/status): what has to be put
/// back later.
[[nodiscard]] std::optional<CpuSet> read_allowed(const host::Root& root, int pid, int tid);

class TaskReader;

/// All processes and threads, in slices. One stat file and one system call per thread; memory for one process
/// at a time.
class Scan {
  public:
    explicit Scan(const host::Root& root, FactSources* sources = nullptr);
    Scan(Scan&&) noexcept;
    Scan& operator=(Scan&&) noexcept;
    ~Scan();

    /// Reads on until the end or until `out_of_time` says so; it is asked after every thread, so that a
    /// process with fifty thousand threads is cut as well. Each process goes to `sink` once it is whole.
    /// True: all were read. A process that is born meanwhile may be missed: subscribe to process events
    /// before the first step.
    bool step(const std::function<bool()>& out_of_time, const std::function<void(Process&&)>& sink);

  private:
    struct Progress;
    std::unique_ptr<Progress> progress_;
};

} // namespace affinityd::inventory

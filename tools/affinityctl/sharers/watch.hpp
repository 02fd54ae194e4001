// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/sharers/event_wakes.hpp"
#include "base/task_id.hpp"
#include "host/root.hpp"
#include "inventory/process_scan.hpp"
#include "inventory/task.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityctl {

/// The process that is watched, as it is now: one that executes another program meanwhile gets its name.
struct WatchedProcess {
    int pid = 0;
    std::string name; ///< any bytes
    std::string unit; ///< its system service; "": it is in none
    /// Their values when the watch began, if they are others now.
    std::optional<std::string> former_name{}, former_unit{};
};

[[nodiscard]] WatchedProcess watched_process(const affinityd::inventory::ProcessScan& scan);

/// Reads name and service again. False: the process, by its main thread, has ended, and nothing is changed.
[[nodiscard]] bool look_again(const affinityd::host::Root& root, const affinityd::TaskId& id,
                              WatchedProcess& process);

// Where NUMA hinting is on, the kernel takes pages away from tasks now and then, to see by the faults who
// touches them, and puts tasks that touched the same pages into a group (struct numa_group,
// kernel/sched/fair.c). This shows that threads have shared memory, once, not how much or whether they still
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

/// Sees for some time which threads of a process wake each other.
class WakeWatch {
  public:
    /// The process of a process or thread id. An Error (ESRCH): there is none. `root` must outlive it.
    static affinityd::Result<WakeWatch> of(const affinityd::host::Root& root, int id);

    /// Begins to count; an Error says why it cannot.
    [[nodiscard]] affinityd::Result<void> begin();
    /// Watches until the time is over, the process has ended, or `wait`, which waits for so long, says that
    /// the user wants no more.
    /// An Error: the kernel does not let it go on.
    [[nodiscard]] affinityd::Result<void> run(std::chrono::milliseconds time,
                                              const std::function<bool(std::chrono::milliseconds)>& wait);
    /// The wake-ups that were seen; to be called once, after run(). An Error: it cannot be read.
    [[nodiscard]] affinityd::Result<Wakes> take();

    /// As it was when it was last looked at.
    [[nodiscard]] const WatchedProcess& process() const { return process_; }
    [[nodiscard]] bool has_ended() const { return has_ended_; }
    [[nodiscard]] NumaHinting hinting() const { return hinting_; }

  private:
    WakeWatch(const affinityd::host::Root& root, affinityd::TaskId id) : root_(&root), id_(id) {}
    void look_at_process();
    void look_at_threads();
    bool rest(std::chrono::milliseconds time, const std::function<bool(std::chrono::milliseconds)>& wait);

    const affinityd::host::Root* root_;
    affinityd::TaskId id_;
    WatchedProcess process_;
    std::optional<EventWakes> events_;
    std::vector<affinityd::inventory::Thread> living_; ///< when it was last looked, while the process lived
    bool has_ended_ = false;
    NumaHinting hinting_ = NumaHinting::off;
    std::chrono::steady_clock::time_point began_{}, ended_{};
};

} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "base/task_id.hpp"
#include "host/root.hpp"
#include "inventory/process_scan.hpp"
#include "inventory/task.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace affinityctl {

/// A thread of the process that was watched.
struct WokenThread {
    std::string name; ///< as last seen; any bytes
    /// Place among the threads that live, by thread id, 0 for the main thread, as a policy's `index` counts;
    /// no value: it has ended.
    std::optional<unsigned> index;
    std::uint64_t by_interrupts = 0; ///< times that a timer or device woke it, on no task's behalf
    std::uint64_t by_others = 0;     ///< times that another process or the kernel did
};

/// Which threads of one process woke each other from waiting for a futex, a pipe, a socket or the like.
struct Wakes {
    using Thread = affinityd::TaskId;
    double seconds = 0; ///< for so long
    std::map<Thread, WokenThread> threads;
    /// (waker, wakee) -> times; both are in `threads`.
    std::map<std::pair<Thread, Thread>, std::uint64_t> pairs;
    std::uint64_t lost = 0; ///< wake-ups between pairs for which the kernel's table had no room
};

/// Counts in the kernel which threads of a process wake each other, by a BPF program at the tracepoint
/// sched:sched_waking and three that follow packets to this machine itself (netif_rx, netif_receive_skb,
/// napi_poll). Counting lasts from watch() to the end of the object; nothing outlives this process. Source:
/// bpf/wakes.bpf.c.
class EventWakes {
  public:
    /// Loads the programs and makes sure, by wake-ups of this program's own whose origin it knows, that this
    /// kernel tells interrupts from tasks. An Error says why it cannot count: not built in, no BTF, no
    /// permission, another PID namespace, a kernel that does not tell.
    static affinityd::Result<std::unique_ptr<EventWakes>> open(const affinityd::host::Root& root);
    EventWakes() = default;
    EventWakes(const EventWakes&) = delete;
    EventWakes& operator=(const EventWakes&) = delete;
    virtual ~EventWakes() = default;

    /// Counts the wake-ups of this process's threads from now on, which may be 0: none.
    virtual void watch(int pid) = 0;
    /// The counts: all but `seconds`, and of the threads the names only.
    [[nodiscard]] virtual affinityd::Result<Wakes> take() const = 0;
};

/// The process that is watched, as it is now: one that executes another program meanwhile gets its name.
struct WatchedProcess {
    int pid = 0;
    std::string name;                       ///< any bytes
    std::string unit;                       ///< its system service; "": it is in none
    std::string first_name{}, first_unit{}; ///< when the watch began
};

[[nodiscard]] WatchedProcess watched_process(const affinityd::inventory::ProcessScan& scan);

/// Reads name and service again. False: the process, by its main thread, has ended, and nothing is changed.
[[nodiscard]] bool look_again(const affinityd::host::Root& root, const affinityd::TaskId& id,
                              WatchedProcess& process);

/// Sees for some time which threads of a process wake each other.
class WakeWatch {
  public:
    /// The process of a process or thread id. An Error (ESRCH): there is none. `root` must outlive it.
    static affinityd::Result<WakeWatch> of(const affinityd::host::Root& root, int id);

    /// Begins to count; an Error says why it cannot.
    [[nodiscard]] affinityd::Result<void> begin();
    /// Watches until the time is over, the process has ended, or `wait`, which waits for so long, says that
    /// the user wants no more.
    void run(std::chrono::milliseconds time, const std::function<bool(std::chrono::milliseconds)>& wait);
    /// The wake-ups that were seen; to be called once, after run(). An Error: it cannot be read.
    [[nodiscard]] affinityd::Result<Wakes> take();

    /// As it was when it was last looked at.
    [[nodiscard]] const WatchedProcess& process() const { return process_; }
    [[nodiscard]] bool has_ended() const { return has_ended_; }

  private:
    WakeWatch(const affinityd::host::Root& root, affinityd::TaskId id) : root_(&root), id_(id) {}
    void look_at_threads();

    const affinityd::host::Root* root_;
    affinityd::TaskId id_;
    WatchedProcess process_;
    std::unique_ptr<EventWakes> events_;
    std::vector<affinityd::inventory::Thread> living_; ///< when it was last looked, while the process lived
    bool has_ended_ = false;
    std::chrono::steady_clock::time_point began_{}, ended_{};
};

} // namespace affinityctl

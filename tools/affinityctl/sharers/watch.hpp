// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/sharers/event_wakes.hpp"
#include "affinityctl/sharers/numa_groups.hpp"
#include "affinityctl/sharers/watched_process.hpp"
#include "base/task_id.hpp"
#include "inventory/task.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace affinityctl {

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
    /// What was seen; to be called once, after run(). An Error: it cannot be read.
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

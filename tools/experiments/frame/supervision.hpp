// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace affinityd::experiments {

/// What an experiment and its threads know of the world while it runs. Every member may be called by any
/// thread at any time and costs a load or a store.
class Run {
  public:
    /// Somebody wants it to end: return soon, with what there is. To be asked at least ten times a second.
    [[nodiscard]] bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }
    void stop() { stopped_.store(true, std::memory_order_relaxed); }
    /// How far it has come: `done` of `all` equal parts. Nothing is shown before the first call.
    void advance(std::uint64_t done, std::uint64_t all) {
        all_.store(all, std::memory_order_relaxed);
        done_.store(done, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t all() const { return all_.load(std::memory_order_relaxed); }

  private:
    std::atomic<bool> stopped_{false};
    std::atomic<std::uint64_t> done_{0}, all_{0};
};

struct Supervision {
    std::string doing;           ///< for the progress bar: "measuring latency"
    bool shows_progress = true;  ///< on standard error, if that is a terminal
    bool wants_priority = false; ///< the experiment's threads run at nice -10
};

enum class Ending {
    done,
    stopped, ///< by SIGINT, SIGTERM or SIGHUP, unless the program ignores it
};

/// Calls `experiment` on a thread of its own, which has all signals blocked, as have the threads that it
/// makes; meanwhile this thread takes those by which people end programs and draws a progress bar. Returns
/// when the experiment has returned. Who asks a second time has the program ended at once: what experiments
/// do to the machine ends with it. An Error: the priority was not granted, or a descriptor or thread cannot
/// be had.
[[nodiscard]] Result<Ending> supervise(const Supervision& supervision,
                                       const std::function<void(Run&)>& experiment);

/// "measuring latency [########------------] 41 %, 12 s left", in so many columns at most.
[[nodiscard]] std::string progress_bar(const std::string& doing, double share, double seconds_left,
                                       std::size_t columns);

} // namespace affinityd::experiments

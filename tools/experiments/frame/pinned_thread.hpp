// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"

#include <functional>
#include <thread>

namespace affinityd::experiments {

/// A thread of this process that stays on given CPUs: when the process ends, however it does, nothing of that
/// is left. Its end is awaited when this is destroyed or move-assigned to.
class PinnedThread {
  public:
    PinnedThread() = default;
    /// Returns when the thread is on its CPUs, and just then calls `body` there, which must not throw. An
    /// Error: it cannot be made, or may not run there; `body` is not called then.
    [[nodiscard]] static Result<PinnedThread> start(const CpuSet& cpus, std::function<void()> body);

    void join() {
        if (thread_.joinable()) thread_.join();
    }

  private:
    explicit PinnedThread(std::jthread thread) : thread_(std::move(thread)) {}
    std::jthread thread_;
};

} // namespace affinityd::experiments

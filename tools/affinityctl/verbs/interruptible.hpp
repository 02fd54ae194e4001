// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/signals.hpp"

#include <chrono>
#include <csignal>

namespace affinityctl {

/// While it is there, the signals by which people end a program end a wait instead.
class Interruptible {
  public:
    Interruptible() { ::pthread_sigmask(SIG_BLOCK, &signals_, &before_); }
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;
    ~Interruptible() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    /// True: one came.
    [[nodiscard]] bool wait(std::chrono::milliseconds time) const {
        const timespec left{time.count() / 1000, time.count() % 1000 * 1'000'000};
        return ::sigtimedwait(&signals_, nullptr, &left) > 0;
    }

  private:
    const sigset_t signals_ = affinityd::host::stop_signals();
    sigset_t before_{};
};

} // namespace affinityctl

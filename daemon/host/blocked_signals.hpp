// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace affinityd::host {

/// Blocks all signals of the calling thread while it lives: a thread that is made meanwhile inherits that,
/// pthread_sigmask(3), and leaves signals to the event loop.
class BlockedSignals {
  public:
    BlockedSignals() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;
    ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_{};
};

} // namespace affinityd::host

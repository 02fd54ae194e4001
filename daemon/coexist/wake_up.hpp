// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/fd.hpp"

#include <chrono>

namespace affinityd::coexist {

/// One descriptor that is readable when another one is, or when a moment has come: epoll(7) over a descriptor
/// and a timerfd_create(2). An event loop attaches it once, whatever conversation is under way.
class WakeUp {
  public:
    using Clock = std::chrono::steady_clock;
    WakeUp();

    /// -1 if the kernel had no descriptors left.
    [[nodiscard]] int fd() const { return epoll_.get(); }
    /// Readable when `fd` (-1: none) is, and at `moment`. Replaces what was asked for before.
    void set(int fd, Clock::time_point moment);
    /// Not readable until the next set().
    void clear();

  private:
    void watch(int fd);
    host::Fd epoll_;
    host::Fd timer_;
    int watched_ = -1;
};

} // namespace affinityd::coexist

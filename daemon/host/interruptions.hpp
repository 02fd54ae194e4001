// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <optional>

namespace affinityd::host {

/// Interrupts what the calling thread waits for, every two milliseconds between begin() and end(): the close
/// of a connection that lingers goes on without anybody who waits for it, as when the time that its owner set
/// is over. Other waits end as by a signal. Belongs to the thread that made it. Uses SIGRTMAX, with no other
/// effect. Source: sk_stream_wait_close in net/core/stream.c, timer_create(2).
class Interruptions {
  public:
    Interruptions();
    Interruptions(const Interruptions&) = delete;
    Interruptions& operator=(const Interruptions&) = delete;
    ~Interruptions();
    void begin() const;
    void end() const;

  private:
    void set(timespec moment) const;
    std::optional<timer_t> timer_; ///< no value: none is to be had, and nothing is interrupted
};

} // namespace affinityd::host

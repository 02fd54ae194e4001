// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include <systemd/sd-event.h>

namespace affinityd::events {

/// Runs an event loop until it ends, and looks at the CPU time of each of its callbacks
/// (CLOCK_THREAD_CPUTIME_ID). Builds with -Dcallback_watch=true abort on one of more than `limit`; others
/// only keep the longest.
class CallbackWatch {
  public:
    static constexpr std::chrono::milliseconds limit{5};

    /// The loop's exit code; negative: an errno value.
    int run(sd_event* event);
    [[nodiscard]] std::chrono::nanoseconds longest() const { return longest_; }

  private:
    void note(std::chrono::nanoseconds used);
    std::chrono::nanoseconds longest_{0};
};

} // namespace affinityd::events

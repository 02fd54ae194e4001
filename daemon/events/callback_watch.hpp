// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "events/callback_limit.hpp"
#include "events/stack_snapshot.hpp"

#include <chrono>
#include <cstdint>
#include <functional>

#include <systemd/sd-event.h>

namespace affinityd::events {

/// Runs an event loop until it ends, and looks at the CPU time of each of its callbacks
/// (CLOCK_THREAD_CPUTIME_ID). Builds with -Dcallback_watch=true abort on one of more than `limit`; others do
/// not look. What a hypervisor takes from this machine counts as the callback's, and it tells of only part:
/// nothing is said where it did so since a second before, and some may take longer (CallbackLimit). (A loop
/// that reads that clock and does nothing else sees steps of several milliseconds about once a minute on such
/// a machine.) AFFINITYD_CALLBACK_LIMIT_MS in the environment of such a build states another limit: where a
/// test makes thousands of processes a second, one lstat(2) in /proc may spin for longer on the kernel's
/// locks. A callback that is told of comes with its stack after four fifths of the limit. With
/// AFFINITYD_CALLBACK_GOES_ON set, the daemon tells and goes on.
class CallbackWatch {
  public:
    static constexpr std::chrono::milliseconds limit{5};

    CallbackWatch();
    /// The loop's exit code; negative: an errno value. `after_each`: called after each callback, for what
    /// would be a turn of the loop more as a source of its own (sd_event_add_post(3)).
    int run(sd_event* event, const std::function<void()>& after_each);
    [[nodiscard]] std::chrono::nanoseconds longest() const { return longest_; }

  private:
    int watched(const std::function<int()>& callback);
    void note(std::chrono::nanoseconds used, bool has_faulted);
    void look();
    CallbackLimit limit_{limit};
    std::chrono::nanoseconds longest_{0};
    std::chrono::steady_clock::time_point looked_{}; ///< at stolen_
    std::uint64_t stolen_ = 0;                       ///< clock ticks
    StackSnapshot stack_;
    bool goes_on_ = false;
};

} // namespace affinityd::events

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "events/sources.hpp"
#include "events/timer.hpp"

#include <chrono>
#include <functional>

namespace affinityd::events {

/// Has something looked at by a thread of its own when it wants that, and taken up when that thread has found
/// it. Who wants no look has no wake-up.
class LookWatch {
  public:
    using Clock = std::chrono::steady_clock;
    struct Looker {
        const char* what;                        ///< for messages
        int fd;                                  ///< readable when something was found; -1: it never is
        std::function<Clock::time_point()> next; ///< when look() is to be called; max(): never
        std::function<void()> look;
        std::function<void()> take;
    };
    explicit LookWatch(Looker looker) : looker_(std::move(looker)) {}

    /// An Error: the loop takes no timer, or does not watch the descriptor.
    [[nodiscard]] Result<void> add_to(sd_event* event);
    /// To be called when all work is done: another look may be wanted.
    void follow();

  private:
    static int on_found(sd_event_source*, int, std::uint32_t, void* userdata);
    void look();
    Looker looker_;
    Timer next_{[this] { look(); }};
    Source found_;
    Clock::time_point waits_until_ = Clock::time_point::max();
};

} // namespace affinityd::events

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/tasks.hpp"
#include "events/timer.hpp"

namespace affinityd::events {

/// Has processes looked at again when their time has come, where the kernel gives no process events: with
/// these, ProcessEvents does it.
class LaterWatch {
  public:
    /// `tasks` must outlive it.
    explicit LaterWatch(app::Tasks& tasks) : tasks_(tasks) {}
    [[nodiscard]] Result<void> add_to(sd_event* event) { return timer_.add_to(event); }
    /// The times may be others than before.
    void follow();

  private:
    using Clock = app::EventQueue::Clock;
    void look();
    app::Tasks& tasks_;
    Timer timer_{[this] { look(); }};
    Clock::time_point waits_until_ = Clock::time_point::max();
};

} // namespace affinityd::events

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/tasks.hpp"
#include "events/deferred.hpp"
#include "events/timer.hpp"

namespace affinityd::events {

/// Has processes looked at again when their time has come, where the kernel gives no process events: with
/// these, ProcessEvents does it.
class LaterWatch {
  public:
    /// `tasks` must outlive it.
    explicit LaterWatch(app::Tasks& tasks) : tasks_(tasks) {}
    [[nodiscard]] Result<void> add_to(sd_event* event);
    /// The times may be others than before.
    void follow();

  private:
    using Clock = app::EventQueue::Clock;
    void look();
    app::Tasks& tasks_;
    Timer timer_{[this] { look(); }};
    Deferred rest_{[this] { look(); }}; ///< for those that are due, and for whom a turn had no time left
    Clock::time_point waits_until_ = Clock::time_point::max();
};

} // namespace affinityd::events

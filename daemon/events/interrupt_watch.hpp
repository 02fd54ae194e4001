// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/manager.hpp"
#include "events/timer.hpp"

namespace affinityd::events {

/// Has the masks of the interrupts under policy looked at every few seconds, since the kernel tells nobody
/// that one was written. Without such interrupts it has no wake-up.
class InterruptWatch {
  public:
    /// The manager must outlive it.
    explicit InterruptWatch(app::Manager& manager) : manager_(manager) {}

    /// An Error: the loop takes no timer.
    [[nodiscard]] Result<void> add_to(sd_event* event) { return next_.add_to(event); }
    /// To be called when the manager has done its work: interrupts may have come under policy.
    void follow();

  private:
    void look();
    app::Manager& manager_;
    Timer next_{[this] { look(); }};
};

} // namespace affinityd::events

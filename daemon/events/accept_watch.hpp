// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/manager.hpp"
#include "events/sources.hpp"
#include "events/timer.hpp"

namespace affinityd::events {

/// Has the listeners of servers looked at when app::Listeners wants that, and puts them right when they have
/// been read. Without policies that steer it has no wake-up.
class AcceptWatch {
  public:
    /// The manager must outlive it.
    explicit AcceptWatch(app::Manager& manager) : manager_(manager) {}

    /// An Error: the loop takes no timer, or does not watch the list.
    [[nodiscard]] Result<void> add_to(sd_event* event);
    /// To be called when the manager has done its work: processes may have been placed.
    void follow();

  private:
    using Clock = app::Listeners::Clock;
    static int on_list(sd_event_source*, int, std::uint32_t, void* userdata);
    void look();
    app::Manager& manager_;
    Timer next_{[this] { look(); }};
    Source arrived_;
    Clock::time_point waits_until_ = Clock::time_point::max();
};

} // namespace affinityd::events

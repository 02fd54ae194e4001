// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/manager.hpp"
#include "events/sources.hpp"
#include "events/timer.hpp"

#include <chrono>

namespace affinityd::events {

/// Has listeners on ports that policies ask for listed twice a second, for the kernel tells nobody that a
/// process has begun to listen. When somebody has, a pass begins, which finds out who; at most one in five
/// seconds for that. Processes that were matched before the list came are looked at again at once. Without
/// such policies it has no wake-up.
class ListenerWatch {
  public:
    /// The manager must outlive it.
    explicit ListenerWatch(app::Manager& manager) : manager_(manager) {}

    /// An Error: the loop takes no timer, or does not watch the list.
    [[nodiscard]] Result<void> add_to(sd_event* event);
    /// To be called when the manager has done its work: other policies may be in force.
    void follow();

  private:
    using Clock = std::chrono::steady_clock;
    [[nodiscard]] inventory::ListenerList* list() { return manager_.tasks().sources().listeners(); }
    static int on_list(sd_event_source*, int, std::uint32_t, void* userdata);
    void look();
    void take_news();
    void pass_on();
    app::Manager& manager_;
    Timer next_{[this] { look(); }};
    Source arrived_;
    Clock::time_point asked_{}; ///< for a pass, last
    bool is_news_ = false;      ///< that no pass was asked for yet
};

} // namespace affinityd::events

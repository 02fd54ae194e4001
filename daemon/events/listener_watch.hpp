// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/listener_glance.hpp"
#include "app/manager.hpp"
#include "events/timer.hpp"

#include <chrono>
#include <memory>
#include <optional>

namespace affinityd::events {

/// Looks twice a second whether somebody has begun to listen on a port that a policy asks for, and has a pass
/// begun then, which finds out who; at most one in five seconds for that. Without such policies it has no
/// wake-up.
class ListenerWatch {
  public:
    /// The manager must outlive it.
    explicit ListenerWatch(app::Manager& manager) : manager_(manager) {}

    /// An Error: the loop takes no timer.
    [[nodiscard]] Result<void> add_to(sd_event* event) { return next_.add_to(event); }
    /// To be called when the manager has done its work: other policies may be in force.
    void follow();

  private:
    using Listeners = app::ListenerGlance::Listeners;
    using Clock = std::chrono::steady_clock;
    void look();
    void seen(Listeners now);
    app::Manager& manager_;
    Timer next_{[this] { look(); }};
    std::optional<Listeners> known_; ///< no value: nobody has looked yet
    app::PortRanges ports_;          ///< that `known_` is about
    Clock::time_point asked_{};      ///< for a pass, last
    /// Ends with this: a glance that is under way then tells nobody.
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

} // namespace affinityd::events

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "events/timer.hpp"

#include <chrono>
#include <functional>

namespace affinityd::events {

/// When passes begin: at regular intervals, and soon after somebody asked for one, all requests of a burst
/// together.
class PassSchedule {
  public:
    /// `begin`: begins a pass; `periodic`: it is the regular one, which reads the hardware again.
    PassSchedule(std::chrono::seconds interval, std::function<void(bool periodic)> begin)
        : interval_(interval), begin_(std::move(begin)) {}

    [[nodiscard]] Result<void> add_to(sd_event* event);
    /// From now on; the same one changes nothing.
    void use(std::chrono::seconds interval);
    void begin_soon() { begin_within(soon); }
    /// As soon as begin_soon() says, or after two seconds.
    void begin_later() { begin_within(later); }
    void end();

  private:
    static constexpr std::chrono::milliseconds soon{300}; ///< what asks for a pass comes in bursts
    static constexpr std::chrono::milliseconds later{2000};
    void begin_within(std::chrono::milliseconds delay);
    void begin_periodic();
    std::chrono::seconds interval_;
    std::function<void(bool periodic)> begin_;
    Timer regular_{[this] { begin_periodic(); }};
    std::chrono::steady_clock::time_point due_{}; ///< of the next one that was asked for
    Timer settled_{[this] { begin_(false); }};
};

} // namespace affinityd::events

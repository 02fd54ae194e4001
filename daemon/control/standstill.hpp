// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/handles.hpp"

#include <chrono>
#include <functional>

namespace affinityd::control {

/// Notices that a connection's other end takes no messages any more. It looks only while something arrives,
/// so that a quiet daemon is not woken for it.
class Standstill {
  public:
    /// Calls `over` when messages have waited on a connection at each of five looks within `patience`.
    Standstill(std::chrono::milliseconds patience, std::function<void()> over)
        : patience_(patience), over_(std::move(over)) {}
    Standstill(const Standstill&) = delete;
    Standstill& operator=(const Standstill&) = delete;
    ~Standstill() = default;

    /// Something has arrived on the connection, or was just sent. `bus` must live until stop().
    void look_soon(sd_event* event, sd_bus* bus);
    void stop();

  private:
    static int on_look(sd_event_source*, std::uint64_t, void* userdata);

    std::chrono::milliseconds patience_;
    std::function<void()> over_;
    sd_bus* bus_ = nullptr;
    Source timer_;
    unsigned looks_ = 0; ///< with messages that waited, running
};

} // namespace affinityd::control

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/world.hpp"
#include "host/root.hpp"

#include <chrono>
#include <map>
#include <optional>

namespace affinityd::app {

/// Weighs interrupts under policy by the time that their CPUs spend in them, so that the queues of a quiet
/// interface push nobody off a core.
class InterruptWeighing {
  public:
    /// References must outlive it.
    InterruptWeighing(const host::Root& root, const Current& current) : root_(root), current_(current) {}

    /// Measures since the last call, and tells the world.
    void weigh();

  private:
    using Clock = std::chrono::steady_clock;
    const host::Root& root_;
    const Current& current_;
    std::map<unsigned, double> before_; ///< seconds, by CPU
    std::optional<Clock::time_point> at_;
};

} // namespace affinityd::app

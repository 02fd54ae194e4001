// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "events/measurement.hpp"
#include "events/timer.hpp"
#include "policy/settings.hpp"

#include <random>

namespace affinityd::events {

/// Measures at the interval of affinityd.yaml(5), and when somebody asks.
class MeasureSchedule {
  public:
    MeasureSchedule(sd_event* event, const policy::Settings& settings, Measurement::Done done);

    [[nodiscard]] Result<void> start();
    /// A run now. An Error: one is running already, or it could not be started.
    [[nodiscard]] Result<void> measure() { return measure(false); }
    /// From now on; a run under way is not changed, and the same settings change nothing.
    void use(const policy::Settings::Measure& settings);
    void end() { timer_.disarm(); }

  private:
    [[nodiscard]] Result<void> measure(bool may_skip);
    void arm();
    sd_event* event_;
    policy::Settings::Measure settings_;
    Measurement::Done done_;
    Measurement measurement_;
    std::minstd_rand random_{std::random_device{}()};
    Timer timer_;
};

} // namespace affinityd::events

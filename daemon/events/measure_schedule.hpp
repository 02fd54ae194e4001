// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "events/measurement.hpp"
#include "events/sources.hpp"
#include "policy/settings.hpp"

#include <functional>
#include <random>
#include <string>

namespace affinityd::events {

/// Measures at the interval of affinityd.yaml(5), and when somebody asks.
class MeasureSchedule {
  public:
    /// Keeps a run, and says what it has shown, or why it has no result.
    using Keep = std::function<Result<std::string>(const measure::Run& run)>;
    MeasureSchedule(sd_event* event, const policy::Settings& settings, Keep keep);

    [[nodiscard]] Result<void> start();
    /// A run now. The answer is an Error if one is running already, or it could not be started.
    void measure(app::Answer answer, app::Until until);
    /// From now on; a run under way is not changed, and the same settings change nothing.
    void use(const policy::Settings::Measure& settings);
    /// The daemon ends.
    void end();

  private:
    [[nodiscard]] Result<void> begin(bool may_skip);
    void ended(const measure::Run& run);
    void arm();
    sd_event* event_;
    policy::Settings::Measure settings_;
    Keep keep_;
    app::Answer waiting_; ///< who asked for the run under way; empty: nobody waits
    Measurement measurement_;
    std::minstd_rand random_{std::random_device{}()};
    Timer timer_;
};

} // namespace affinityd::events

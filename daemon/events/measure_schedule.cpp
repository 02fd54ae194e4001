// SPDX-License-Identifier: Apache-2.0
#include "events/measure_schedule.hpp"

namespace affinityd::events {

MeasureSchedule::MeasureSchedule(sd_event* event, const policy::Settings& settings, Measurement::Done done)
    : event_(event), settings_(settings.measure), done_(done),
      measurement_(event, settings.measure, done, {settings.runtime_dir + "/measure"}), timer_([this] {
          arm();
          static_cast<void>(measure(true).has_value()); // a run that could not start is on record
      }) {}

Result<void> MeasureSchedule::start() {
    if (auto added = timer_.add_to(event_); !added) return added;
    if (settings_.interval.count() > 0) arm();
    return {};
}

void MeasureSchedule::arm() {
    const auto longest = std::chrono::microseconds(settings_.random_delay).count();
    const std::chrono::microseconds delay(std::uniform_int_distribution<std::int64_t>(0, longest)(random_));
    timer_.arm(settings_.interval + delay);
}

void MeasureSchedule::use(const policy::Settings::Measure& settings) {
    if (settings == settings_) return;
    settings_ = settings;
    measurement_.use(settings);
    if (settings_.interval.count() > 0)
        arm();
    else
        timer_.disarm();
}

Result<void> MeasureSchedule::measure(bool may_skip) {
    if (measurement_.running()) return fail("a measurement is running already");
    auto started = measurement_.start(may_skip);
    if (!started) done_({"", measure::Outcome::failed, started.error().to_string()});
    return started;
}

} // namespace affinityd::events

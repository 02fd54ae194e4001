// SPDX-License-Identifier: Apache-2.0
#include "events/measure_schedule.hpp"

#include "status/changes.hpp"

#include <utility>

namespace affinityd::events {

MeasureSchedule::MeasureSchedule(sd_event* event, const policy::Settings& settings, Keep keep)
    : event_(event), settings_(settings.measure), keep_(std::move(keep)),
      measurement_(event, settings.measure, [this](const auto& run) { ended(run); },
                   {settings.runtime_dir + "/measure"}),
      timer_([this] {
          arm();
          static_cast<void>(begin(true).has_value()); // a run that could not start is on record
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

Result<void> MeasureSchedule::begin(bool may_skip) {
    if (measurement_.running()) return fail("a measurement is running already");
    auto started = measurement_.start(may_skip);
    if (!started) ended({"", measure::Outcome::failed, started.error().to_string()});
    return started;
}

void MeasureSchedule::measure(app::Answer answer, app::Until until) {
    if (auto begun = begin(false); !begun) return answer(std::unexpected(std::move(begun.error())));
    if (until == app::Until::begun) return answer(status::message_text("a measurement has begun"));
    waiting_ = std::move(answer);
}

void MeasureSchedule::ended(const measure::Run& run) {
    auto result = keep_(run);
    if (auto answer = std::exchange(waiting_, {})) answer(std::move(result));
}

void MeasureSchedule::end() {
    timer_.disarm();
    if (auto answer = std::exchange(waiting_, {}))
        answer(fail("the daemon is stopping: the measurement is given up"));
}

} // namespace affinityd::events

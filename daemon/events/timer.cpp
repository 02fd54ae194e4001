// SPDX-License-Identifier: Apache-2.0
#include "events/timer.hpp"

#include "base/clock.hpp"

namespace affinityd::events {

Result<void> Timer::add_to(sd_event* event) {
    sd_event_source* source = nullptr;
    const int status = sd_event_add_time(event, &source, CLOCK_MONOTONIC, 0, 0, on_time, this);
    if (status < 0) return fail("cannot set up a timer", {}, -status);
    source_.reset(source);
    disarm();
    return {};
}

void Timer::arm(std::chrono::microseconds after) {
    sd_event_source_set_time_relative(source_.get(), usec_of(after));
    sd_event_source_set_enabled(source_.get(), SD_EVENT_ONESHOT);
}

void Timer::disarm() { sd_event_source_set_enabled(source_.get(), SD_EVENT_OFF); }

bool Timer::is_armed() const {
    int enabled = SD_EVENT_OFF;
    return sd_event_source_get_enabled(source_.get(), &enabled) >= 0 && enabled != SD_EVENT_OFF;
}

int Timer::on_time(sd_event_source*, std::uint64_t, void* userdata) {
    static_cast<Timer*>(userdata)->expired_();
    return 0;
}

} // namespace affinityd::events

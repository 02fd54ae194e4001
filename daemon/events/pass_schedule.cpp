// SPDX-License-Identifier: Apache-2.0
#include "events/pass_schedule.hpp"

#include <utility>

namespace affinityd::events {

Result<void> PassSchedule::add_to(sd_event* event) {
    if (auto added = regular_.add_to(event); !added) return added;
    if (auto added = settled_.add_to(event); !added) return added;
    regular_.arm(interval_);
    return {};
}

void PassSchedule::use(std::chrono::seconds interval) {
    if (std::exchange(interval_, interval) != interval) regular_.arm(interval_);
}

void PassSchedule::begin_within(std::chrono::milliseconds delay) {
    const auto due = std::chrono::steady_clock::now() + delay;
    if (settled_.is_armed() && due_ <= due) return;
    due_ = due;
    settled_.arm(delay);
}

void PassSchedule::begin_periodic() {
    regular_.arm(interval_);
    begin_(true);
}

void PassSchedule::end() {
    regular_.disarm();
    settled_.disarm();
}

} // namespace affinityd::events

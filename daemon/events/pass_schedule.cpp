// SPDX-License-Identifier: Apache-2.0
#include "events/pass_schedule.hpp"

#include <utility>

namespace affinityd::events {

namespace {

constexpr std::chrono::milliseconds settle{300}; ///< what asks for a pass comes in bursts

} // namespace

Result<void> PassSchedule::add_to(sd_event* event) {
    if (auto added = regular_.add_to(event); !added) return added;
    if (auto added = settled_.add_to(event); !added) return added;
    regular_.arm(interval_);
    return {};
}

void PassSchedule::use(std::chrono::seconds interval) {
    if (std::exchange(interval_, interval) != interval) regular_.arm(interval_);
}

void PassSchedule::begin_soon() {
    if (!settled_.is_armed()) settled_.arm(settle);
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

// SPDX-License-Identifier: Apache-2.0
#include "events/later_watch.hpp"

#include <algorithm>

namespace affinityd::events {

namespace {

constexpr std::chrono::milliseconds longest_look{2}; ///< after which other work has its turn

} // namespace

Result<void> LaterWatch::add_to(sd_event* event) {
    // A timer that has expired would come before all that is less important, again and again.
    rest_.add_to(event, SD_EVENT_PRIORITY_IDLE);
    return timer_.add_to(event);
}

void LaterWatch::follow() {
    if (!tasks_.events().empty()) return rest_.arm();
    const auto due = tasks_.events().next_due();
    if (due == waits_until_) return;
    waits_until_ = due;
    if (due == Clock::time_point::max()) return timer_.disarm();
    const auto left = std::max(due - Clock::now(), Clock::duration::zero());
    timer_.arm(std::chrono::ceil<std::chrono::microseconds>(left));
}

void LaterWatch::look() {
    waits_until_ = Clock::time_point::max(); // follow() is called after this
    const auto begun = Clock::now();
    while (const auto process = tasks_.events().next(begun)) {
        tasks_.process_changed(process->pid, {.has_changed = false});
        if (Clock::now() >= begun + longest_look) break;
    }
}

} // namespace affinityd::events

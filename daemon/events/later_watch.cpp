// SPDX-License-Identifier: Apache-2.0
#include "events/later_watch.hpp"

#include <algorithm>

namespace affinityd::events {

namespace {

constexpr std::chrono::milliseconds longest{2}; ///< after which other work has its turn
constexpr app::EventQueue::Clock::time_point at_once{};

} // namespace

void LaterWatch::follow() {
    const auto& events = tasks_.events();
    // Those for whom the last turn had no time left have their next one at once.
    const auto due = events.empty() ? events.next_due() : at_once;
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
        if (Clock::now() >= begun + longest) break;
    }
}

} // namespace affinityd::events

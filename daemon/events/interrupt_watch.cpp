// SPDX-License-Identifier: Apache-2.0
#include "events/interrupt_watch.hpp"

#include "app/interrupt_glance.hpp"

namespace affinityd::events {

namespace {

/// Between two looks: a foreign mask stays for less than five seconds.
constexpr std::chrono::seconds pause{3};

} // namespace

void InterruptWatch::follow() {
    if (!next_.is_armed() && manager_.queues().guards_interrupts()) next_.arm(pause);
}

void InterruptWatch::look() {
    follow();
    if (!manager_.queues().guards_interrupts() || manager_.work().is_urgent_full()) return;
    // Who did it may be a program that only a pass over all processes finds: irqbalance.
    manager_.work().add_urgent(std::make_unique<app::InterruptGlance>(
        manager_.queues(), [this] { manager_.work().want(app::Work::Urgency::soon); }));
}

} // namespace affinityd::events

// SPDX-License-Identifier: Apache-2.0
#include "events/listener_watch.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::events {

namespace {

constexpr std::chrono::milliseconds between_glances{500};
/// Anybody may listen on high ports, again and again.
constexpr std::chrono::seconds between_passes{5};

} // namespace

void ListenerWatch::follow() {
    const auto& root = manager_.tasks().sources().root();
    if (!next_.is_armed() && root.is_live() && !manager_.world()->matcher().ports().empty())
        next_.arm(between_glances);
}

void ListenerWatch::look() {
    follow();
    const auto& ports = manager_.world()->matcher().ports();
    if (ports.empty() || manager_.work().is_urgent_full()) return;
    if (ports != ports_) known_.reset(); // the pass that follows a reload sees all
    ports_ = ports;
    manager_.work().add_urgent(std::make_unique<app::ListenerGlance>(
        manager_.tasks().sources().root(), ports, [this, alive = std::weak_ptr<bool>(alive_)](Listeners now) {
            if (!alive.expired()) seen(std::move(now));
        }));
}

void ListenerWatch::seen(Listeners now) {
    const bool is_news = known_ && !std::ranges::includes(*known_, now);
    if (!is_news) {
        known_ = std::move(now);
        return;
    }
    const auto time = Clock::now();
    if (time < asked_ + between_passes) return; // still news then
    asked_ = time;
    known_ = std::move(now);
    manager_.work().want(app::Work::Urgency::soon);
}

} // namespace affinityd::events

// SPDX-License-Identifier: Apache-2.0
#include "events/accept_watch.hpp"

#include <algorithm>

namespace affinityd::events {

Result<void> AcceptWatch::add_to(sd_event* event) {
    if (auto added = next_.add_to(event); !added) return added;
    const int list = manager_.listeners().fd();
    if (list < 0) return {};
    sd_event_source* source = nullptr;
    const int status = sd_event_add_io(event, &source, list, EPOLLIN, on_list, this);
    if (status < 0) return fail("cannot watch the listeners of servers", {}, -status);
    arrived_.reset(source);
    return {};
}

void AcceptWatch::follow() {
    const auto due = manager_.listeners().next_look();
    if (due == waits_until_) return;
    waits_until_ = due;
    if (due == Clock::time_point::max()) return next_.disarm();
    const auto left = std::max(due - Clock::now(), Clock::duration::zero());
    next_.arm(std::chrono::ceil<std::chrono::microseconds>(left));
}

void AcceptWatch::look() {
    waits_until_ = Clock::time_point::max();
    manager_.listeners().look();
}

int AcceptWatch::on_list(sd_event_source*, int, std::uint32_t, void* userdata) {
    auto& self = *static_cast<AcceptWatch*>(userdata);
    auto& listeners = self.manager_.listeners();
    if (listeners.take()) self.manager_.work().add(std::make_unique<app::ListenerRound>(listeners));
    return 0;
}

} // namespace affinityd::events

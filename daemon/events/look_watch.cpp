// SPDX-License-Identifier: Apache-2.0
#include "events/look_watch.hpp"

#include <algorithm>

namespace affinityd::events {

Result<void> LookWatch::add_to(sd_event* event) {
    if (auto added = next_.add_to(event); !added) return added;
    if (looker_.fd < 0) return {};
    sd_event_source* source = nullptr;
    const int status = sd_event_add_io(event, &source, looker_.fd, EPOLLIN, on_found, this);
    if (status < 0) return fail("cannot watch what is found", looker_.what, -status);
    found_.reset(source);
    return {};
}

void LookWatch::follow() {
    const auto due = looker_.next();
    if (due == waits_until_) return;
    waits_until_ = due;
    if (due == Clock::time_point::max()) return next_.disarm();
    const auto left = std::max(due - Clock::now(), Clock::duration::zero());
    next_.arm(std::chrono::ceil<std::chrono::microseconds>(left));
}

void LookWatch::look() {
    waits_until_ = Clock::time_point::max();
    looker_.look();
    follow();
}

int LookWatch::on_found(sd_event_source*, int, std::uint32_t, void* userdata) {
    auto& watch = *static_cast<LookWatch*>(userdata);
    watch.looker_.take();
    watch.follow();
    return 0;
}

} // namespace affinityd::events

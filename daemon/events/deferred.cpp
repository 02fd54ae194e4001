// SPDX-License-Identifier: Apache-2.0
#include "events/deferred.hpp"

#include <cerrno>
#include <new>

namespace affinityd::events {

void Deferred::add_to(sd_event* event, std::int64_t priority) {
    event_ = event;
    priority_ = priority;
}

void Deferred::arm() {
    if (waiting_) return;
    sd_event_source* source = nullptr;
    const int status = sd_event_add_defer(event_, &source, on_turn, this);
    if (status == -ENOMEM) throw std::bad_alloc();
    if (status < 0) return; // a loop that has ended, where nothing has a turn any more
    waiting_.reset(source);
    sd_event_source_set_priority(source, priority_);
}

void Deferred::set_priority(std::int64_t priority) {
    priority_ = priority;
    if (waiting_) sd_event_source_set_priority(waiting_.get(), priority);
}

int Deferred::on_turn(sd_event_source*, void* userdata) {
    auto& self = *static_cast<Deferred*>(userdata);
    self.waiting_.reset();
    self.turn_(); // which may arm it again
    return 0;
}

} // namespace affinityd::events

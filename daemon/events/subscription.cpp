// SPDX-License-Identifier: Apache-2.0
#include "events/subscription.hpp"

#include <algorithm>
#include <utility>

#include <sys/epoll.h>

namespace affinityd::events {

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds longest_pause{60};

} // namespace

Result<void> Subscription::start() {
    if (auto added = timer_.add_to(event_); !added) return added;
    return open();
}

Result<void> Subscription::open() {
    readable_.reset(); // before its descriptor, which ends when another is opened
    auto fd = parts_.open();
    if (!fd) return std::unexpected(fd.error());
    sd_event_source* source = nullptr;
    const int status = sd_event_add_io(event_, &source, *fd, EPOLLIN, on_readable, this);
    if (status < 0) return fail("the loop does not take " + parts_.what, {}, -status);
    readable_.reset(source);
    sd_event_source_set_priority(source, parts_.priority);
    opened_at_ = steady_clock::now();
    is_broken_ = false;
    return {};
}

void Subscription::break_off(const std::string& reason) {
    if (std::exchange(is_broken_, true)) return;
    sd_event_source_set_enabled(readable_.get(), SD_EVENT_OFF); // it may stay readable
    if (steady_clock::now() - opened_at_ > longest_pause) pause_ = parts_.first_pause;
    log_.warn(parts_.what + " broke off and are subscribed to again after a pause: " + reason);
    reopen_later();
}

void Subscription::pause() {
    readable_.reset();
    timer_.disarm();
    is_broken_ = false;
}

void Subscription::resume() {
    if (const auto opened = open(); !opened) {
        log_.warn(parts_.what + " cannot be subscribed to: " + opened.error().to_string());
        is_broken_ = true;
        reopen_later();
    }
}

void Subscription::reopen_later() {
    timer_.arm(pause_);
    pause_ = std::min<std::chrono::milliseconds>(pause_ * 2, longest_pause);
}

void Subscription::reopen() {
    if (auto opened = open(); !opened) {
        log_.warn(parts_.what + " cannot be subscribed to: " + opened.error().to_string());
        return reopen_later();
    }
    log_.info(parts_.what + " are subscribed to again");
    parts_.missed();
}

int Subscription::on_readable(sd_event_source*, int, std::uint32_t events, void* userdata) {
    auto& self = *static_cast<Subscription*>(userdata);
    if (const auto done = self.parts_.read(); !done)
        self.break_off(done.error().to_string());
    else if ((events & EPOLLHUP) != 0)
        self.break_off("the socket hung up");
    return 0;
}

} // namespace affinityd::events

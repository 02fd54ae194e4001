// SPDX-License-Identifier: Apache-2.0
#include "events/sources.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

#include <sys/epoll.h>

namespace affinityd::events {

Result<void> Descriptor::add_to(sd_event* event, int fd, const char* what) {
    if (fd < 0) return {};
    sd_event_source* source = nullptr;
    const int status = sd_event_add_io(event, &source, fd, EPOLLIN, on_ready, this);
    if (status < 0) return fail("the loop does not watch a descriptor", what, -status);
    source_.reset(source);
    return {};
}

int Descriptor::on_ready(sd_event_source*, int, std::uint32_t, void* userdata) {
    static_cast<Descriptor*>(userdata)->ready_();
    return 0;
}

Result<void> Timer::add_to(sd_event* event, clockid_t clock) {
    sd_event_source* source = nullptr;
    constexpr std::uint64_t accuracy = 1000; // us; by default an idle loop wakes up to 250 ms late
    const int status = sd_event_add_time(event, &source, clock, 0, accuracy, on_time, this);
    if (status < 0) return fail("cannot set up a timer", {}, -status);
    source_.reset(source);
    disarm();
    return {};
}

void Timer::arm(std::chrono::microseconds after) {
    due_ = Clock::now() + after;
    sd_event_source_set_time_relative(source_.get(), usec_of(after));
    sd_event_source_set_enabled(source_.get(), SD_EVENT_ONESHOT);
}

void Timer::arm_at(Clock::time_point due) {
    if (due == due_) return;
    if (due == never) return disarm();
    arm(std::chrono::ceil<std::chrono::microseconds>(std::max(due - Clock::now(), Clock::duration::zero())));
    due_ = due;
}

void Timer::disarm() {
    due_ = never;
    sd_event_source_set_enabled(source_.get(), SD_EVENT_OFF);
}

int Timer::on_time(sd_event_source*, std::uint64_t, void* userdata) {
    auto& self = *static_cast<Timer*>(userdata);
    self.due_ = never;
    self.expired_(); // which may arm it again
    return 0;
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

namespace {

constexpr std::chrono::milliseconds first_pause{1000}, longest_pause{60'000};

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
    opened_at_ = Timer::Clock::now();
    is_broken_ = false;
    return {};
}

void Subscription::break_off(const std::string& reason) {
    if (std::exchange(is_broken_, true)) return;
    sd_event_source_set_enabled(readable_.get(), SD_EVENT_OFF); // it may stay readable
    if (Timer::Clock::now() - opened_at_ > longest_pause) pause_ = first_pause;
    log_.warn(parts_.what + " broke off and are subscribed to again after a pause: " + reason);
    reopen_later();
}

void Subscription::pause() {
    readable_.reset();
    timer_.disarm();
    is_broken_ = false;
}

void Subscription::resume() { is_broken_ = !try_to_open(); }

bool Subscription::try_to_open() {
    const auto opened = open();
    if (opened) return true;
    log_.warn(parts_.what + " cannot be subscribed to: " + opened.error().to_string());
    reopen_later();
    return false;
}

void Subscription::reopen_later() {
    timer_.arm(pause_);
    pause_ = std::min<std::chrono::milliseconds>(pause_ * 2, longest_pause);
}

void Subscription::reopen() {
    if (!try_to_open()) return;
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

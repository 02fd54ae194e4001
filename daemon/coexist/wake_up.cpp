// SPDX-License-Identifier: Apache-2.0
#include "coexist/wake_up.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace affinityd::coexist {

namespace {

bool add(int epoll, int fd) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.fd = fd;
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

} // namespace

WakeUp::WakeUp()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (!epoll_ || !timer_ || !add(epoll_.get(), timer_.get())) epoll_.reset();
}

void WakeUp::watch(int fd) {
    // A descriptor that was closed has left the set by itself; its number may be another one's by now.
    if (watched_ >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched_, nullptr);
    watched_ = fd >= 0 && add(epoll_.get(), fd) ? fd : -1;
}

void WakeUp::set(int fd, Clock::time_point moment) {
    watch(fd);
    const auto since =
        std::chrono::duration_cast<std::chrono::nanoseconds>(moment.time_since_epoch()).count();
    constexpr long long second = 1'000'000'000;
    itimerspec at{};
    at.it_value.tv_sec = since / second;
    at.it_value.tv_nsec = since > 0 ? since % second : 1; // all zeros would disarm it
    ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

void WakeUp::clear() {
    watch(-1);
    const itimerspec never{};
    ::timerfd_settime(timer_.get(), 0, &never, nullptr);
}

} // namespace affinityd::coexist

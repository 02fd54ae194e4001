// SPDX-License-Identifier: Apache-2.0
#include "events/stack_snapshot.hpp"

#include <array>
#include <csignal>

#include <execinfo.h>
#include <unistd.h>

namespace affinityd::events {

namespace {

constexpr int most_frames = 48;
// The handler's: it has no other way to them.
std::array<void*, most_frames> frames{};
volatile std::sig_atomic_t frame_count = 0;

void take_snapshot(int) { frame_count = ::backtrace(frames.data(), most_frames); }

} // namespace

StackSnapshot::~StackSnapshot() {
    if (has_timer_) ::timer_delete(timer_);
}

void StackSnapshot::prepare(std::chrono::nanoseconds after) {
    after_ = after;
    ::backtrace(frames.data(), 1); // its first call loads a library, which no handler may
    struct sigaction action {};
    action.sa_handler = take_snapshot;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGRTMIN, &action, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGRTMIN;
    event._sigev_un._tid = ::gettid();
    has_timer_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
}

void StackSnapshot::set(std::chrono::nanoseconds left) {
    if (!has_timer_) return;
    constexpr auto second = std::chrono::nanoseconds(std::chrono::seconds(1)).count();
    itimerspec time{};
    time.it_value = {.tv_sec = left.count() / second, .tv_nsec = left.count() % second};
    ::timer_settime(timer_, 0, &time, nullptr);
}

void StackSnapshot::begin() {
    frame_count = 0;
    set(after_);
}

void StackSnapshot::end() { set(std::chrono::nanoseconds::zero()); }

void StackSnapshot::print() const {
    if (frame_count > 0) ::backtrace_symbols_fd(frames.data(), frame_count, STDERR_FILENO);
}

} // namespace affinityd::events

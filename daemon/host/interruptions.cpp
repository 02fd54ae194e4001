// SPDX-License-Identifier: Apache-2.0
#include "host/interruptions.hpp"

#include <csignal>

#include <unistd.h>

namespace affinityd::host {

namespace {

int interrupt() { return SIGRTMAX; } // nobody else uses it

} // namespace

Interruptions::Interruptions() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    if (::sigaction(interrupt(), &action, nullptr) != 0) return;
    sigset_t mask;
    ::sigemptyset(&mask);
    ::sigaddset(&mask, interrupt());
    ::pthread_sigmask(SIG_UNBLOCK, &mask, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = interrupt();
    event._sigev_un._tid = ::gettid(); // has no other name before glibc 2.38
    timer_t timer{};
    if (::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) timer_ = timer;
}

Interruptions::~Interruptions() {
    if (timer_) ::timer_delete(*timer_);
}

void Interruptions::begin() const { set({.tv_sec = 0, .tv_nsec = 2'000'000}); }

void Interruptions::end() const { set({}); }

void Interruptions::set(timespec moment) const {
    const itimerspec times{.it_interval = moment, .it_value = moment};
    if (timer_) ::timer_settime(*timer_, 0, &times, nullptr);
}

} // namespace affinityd::host

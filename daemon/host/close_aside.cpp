// SPDX-License-Identifier: Apache-2.0
#include "host/close_aside.hpp"

#include "host/blocked_signals.hpp"

#include <csignal>
#include <ctime>
#include <optional>
#include <system_error>
#include <thread>

#include <unistd.h>

namespace affinityd::host {

namespace {

/// While it lives, interrupts what the calling thread waits for, ten times a second: a connection that
/// lingers goes on without anybody who waits for it, as when the time that its owner set is over.
class Interruptions {
  public:
    Interruptions() {
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
        if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
            return; // it waits as long as its owner likes
        timer_ = timer;
        constexpr timespec moment{.tv_sec = 0, .tv_nsec = 100'000'000};
        const itimerspec times{.it_interval = moment, .it_value = moment};
        ::timer_settime(timer, 0, &times, nullptr);
    }
    Interruptions(const Interruptions&) = delete;
    Interruptions& operator=(const Interruptions&) = delete;
    ~Interruptions() {
        if (timer_) ::timer_delete(*timer_);
    }

  private:
    static int interrupt() { return SIGRTMAX; } // nobody else uses it
    std::optional<timer_t> timer_;
};

} // namespace

void CloseAside::close(Fd fd) {
    const BlockedSignals blocked;
    ++*waiting_;
    const int number = fd.release();
    const auto close_it = [number, waiting = waiting_] {
        const Interruptions interruptions;
        ::close(number);
        --*waiting;
    };
    try {
        std::thread(close_it).detach();
    } catch (const std::system_error&) {
        close_it();
    }
}

} // namespace affinityd::host

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

namespace affinityd::host {

/// Blocks all signals of the calling thread while it lives: a thread that is made meanwhile inherits that,
/// pthread_sigmask(3), and leaves signals to the event loop.
class BlockedSignals {
  public:
    BlockedSignals() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;
    ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_{};
};

/// Starts a thread that is left to itself, with all signals blocked. False: the kernel gives none now, as
/// when a user has forked until no process id is left.
template <class Work>
[[nodiscard]] bool start_thread(Work work) {
    const BlockedSignals blocked;
    try {
        std::thread(std::move(work)).detach();
    } catch (const std::system_error&) {
        return false;
    }
    return true;
}

/// The signals by which people end a program, without those that it was started to ignore: nohup(1) has it
/// ignore SIGHUP, a shell its background SIGINT.
[[nodiscard]] inline sigset_t stop_signals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction present {};
        if (::sigaction(number, nullptr, &present) == 0 && present.sa_handler != SIG_IGN)
            ::sigaddset(&signals, number);
    }
    return signals;
}

/// Runs it in a thread; where none is to be had, when its result is asked for. The end of what this returns
/// waits for it.
template <class Run>
auto run_aside(Run run) {
    const BlockedSignals blocked; // they are the loop's
    try {
        return std::async(std::launch::async, run);
    } catch (const std::system_error&) {
        return std::async(std::launch::deferred, run);
    }
}

} // namespace affinityd::host

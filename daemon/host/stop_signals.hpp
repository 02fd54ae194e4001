// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace affinityd::host {

/// The signals by which people end a program, without those that it was started to ignore: nohup(1) has it
/// ignore SIGHUP, a shell its background SIGINT. Whoever waits for a blocked signal gets it all the same.
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

} // namespace affinityd::host

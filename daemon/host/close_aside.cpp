// SPDX-License-Identifier: Apache-2.0
#include "host/close_aside.hpp"

#include "host/blocked_signals.hpp"

#include <system_error>
#include <thread>

#include <unistd.h>

namespace affinityd::host {

void CloseAside::close(Fd fd) {
    const BlockedSignals blocked;
    ++*waiting_;
    const auto close_it = [number = fd.release(), waiting = waiting_] {
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

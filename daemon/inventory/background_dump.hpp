// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/socket_dump.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace affinityd::inventory {

/// A SocketDump on a thread of its own. In one system call the kernel walks past all sockets that are not
/// wanted, those of other network namespaces and address families too: with 100,000 of them for some 7 ms,
/// which is too long for the event loop. Where no thread is to be had, the caller reads itself.
class BackgroundDump {
  public:
    BackgroundDump(Protocol protocol, int family, Wanted wanted);
    BackgroundDump(const BackgroundDump&) = delete;
    BackgroundDump& operator=(const BackgroundDump&) = delete;
    /// Ends the thread; waits for the system call that it is in.
    ~BackgroundDump();

    /// Some hundred sockets, and how the reading went on. After `end`, `interrupted`, `refused` or an Error
    /// there is no further one.
    struct Part {
        std::vector<LocalSocket> sockets;
        Result<SocketDump::Step> step = SocketDump::Step::more;
    };
    /// The next part; waits for it, but for no longer than `patience`. No value: it is not there yet.
    [[nodiscard]] std::optional<Part> take(std::chrono::microseconds patience);

  private:
    [[nodiscard]] Part read();
    void work(const std::stop_token& stop);

    Protocol protocol_;
    int family_;
    Wanted wanted_;
    std::optional<SocketDump> dump_; ///< the thread's, if there is one

    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Part> parts_; ///< read and not yet taken; under the mutex
    std::jthread thread_;    ///< last, so that it ends before what it uses
};

} // namespace affinityd::inventory

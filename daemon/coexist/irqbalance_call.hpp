// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace affinityd::coexist {

/// One request to irqbalance: a connection of its own that never waits. Step it when fd() is readable, and at
/// the deadline.
class IrqbalanceCall {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds patience{300};

    /// `wants_answer`: the peer's text up to its end belongs to the result.
    IrqbalanceCall(std::string path, std::string request, bool wants_answer, Clock::time_point now)
        : path_(std::move(path)), request_(std::move(request)), wants_answer_(wants_answer),
          deadline_(now + patience) {}

    /// Does what can be done without waiting. The answer ("" if none is wanted), an Error, or no value: it
    /// is not over.
    [[nodiscard]] std::optional<Result<std::string>> step(Clock::time_point now);
    [[nodiscard]] int fd() const { return socket_.get(); } ///< -1 before the first step
    [[nodiscard]] Clock::time_point deadline() const { return deadline_; }

  private:
    [[nodiscard]] Result<void> connect();
    [[nodiscard]] Result<bool> receive();

    std::string path_;
    std::string request_;
    bool wants_answer_;
    Clock::time_point deadline_;
    host::Fd socket_;
    std::string answer_;
};

/// One descriptor that is readable when another one is, or when a moment has come: epoll(7) over a descriptor
/// and a timerfd_create(2). An event loop attaches it once, whatever conversation is under way.
class WakeUp {
  public:
    using Clock = std::chrono::steady_clock;
    WakeUp();

    /// -1 if the kernel had no descriptors left.
    [[nodiscard]] int fd() const { return epoll_.get(); }
    /// Readable when `fd` (-1: none) is, and at `moment`. Replaces what was asked for before.
    void set(int fd, Clock::time_point moment);
    /// Not readable until the next set().
    void clear();

  private:
    void watch(int fd);
    host::Fd epoll_;
    host::Fd timer_;
    int watched_ = -1;
};

} // namespace affinityd::coexist

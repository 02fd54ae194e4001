// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace affinityd::coexist {

/// One request to irqbalance: a connection of its own that never waits. Step it when fd() is readable, when
/// retry_at() has come, and at the deadline.
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
    /// The connection; -1 before there is one.
    [[nodiscard]] int fd() const { return is_connected_ ? socket_.get() : -1; }
    /// When to step again though nothing is readable: the deadline, or earlier while the peer's queue of
    /// connections is full.
    [[nodiscard]] Clock::time_point wake_at(Clock::time_point now) const;

  private:
    [[nodiscard]] Result<bool> connect();
    [[nodiscard]] Result<void> send();
    [[nodiscard]] Result<bool> receive();

    std::string path_;
    std::string request_;
    bool wants_answer_;
    Clock::time_point deadline_;
    host::Fd socket_;
    bool is_connected_ = false;
    std::string answer_;
};

} // namespace affinityd::coexist

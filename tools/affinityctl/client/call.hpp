// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/globals.hpp"

#include <chrono>
#include <expected>
#include <string>
#include <vector>

namespace affinityctl {

/// How long an answer is waited for.
struct Patience {
    std::chrono::seconds time{30};
    std::string doing{}; ///< for the progress line; "": there is none
    bool may_ask = true; ///< over the bus, polkit may ask the user for a password, which takes longer
};

/// Calls a method of the daemon over the private socket in its runtime folder, which works without a message
/// bus, or, where only root may open that, over the system bus; that of another machine over the system bus
/// there, by ssh(1), as systemctl does. Every method takes texts and returns one.
[[nodiscard]] std::expected<std::string, CallError>
call_daemon(const Globals& globals, const char* method, const std::vector<std::string>& arguments = {},
            const Patience& patience = {});

/// A line on standard error, if that is a terminal, for what takes longer than half a second. Wiped at the
/// end.
class ProgressLine {
  public:
    using Clock = std::chrono::steady_clock;
    /// `doing`: "applying"; "": nothing is ever shown.
    explicit ProgressLine(std::string doing);
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    ~ProgressLine();

    /// To be called now and then; draws the line anew when it says something else.
    void go_on();
    [[nodiscard]] Clock::duration elapsed() const { return Clock::now() - since_; }

  private:
    std::string doing_;
    Clock::time_point since_ = Clock::now();
    std::string shown_;
};

} // namespace affinityctl

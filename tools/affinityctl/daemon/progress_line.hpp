// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace affinityctl {

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

/// The text of the line after so much time; "": nothing yet.
[[nodiscard]] std::string progress_text(const std::string& doing, std::chrono::milliseconds elapsed);

} // namespace affinityctl

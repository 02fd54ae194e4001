// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace affinityd::locality {

/// How fast a thread works for which nobody waits: in turns of a fifth of a millisecond, each followed by a
/// pause of nineteen times the CPU time that it took. A program that starts or wakes up on the same CPU then
/// waits for no more than a turn; of a longer one it would wait for the scheduler's slice, milliseconds. For
/// one thread.
class Pace {
  public:
    using Clock = std::chrono::steady_clock;
    /// `most`: CPU time in all; 0: none.
    Pace(std::stop_token stop, std::chrono::nanoseconds most);

    /// To be asked often, with nothing in hand that others wait for: makes the pause where the turn is over.
    /// False: the time in all is over, or stop was requested.
    [[nodiscard]] bool goes_on();

  private:
    void pause(std::chrono::nanoseconds used);
    std::stop_token stop_;
    std::chrono::nanoseconds left_; ///< CPU time that may be used
    std::chrono::nanoseconds seen_; ///< CPU time of the thread when the turn began
    Clock::time_point turn_end_;
    bool is_over_;
    std::mutex mutex_; ///< for changed_, which knows stop tokens
    std::condition_variable_any changed_;
};

} // namespace affinityd::locality

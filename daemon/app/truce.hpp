// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/action.hpp"

#include <chrono>

namespace affinityd::app {

class Log;

/// What keeps two writers from fighting over a mask for ever: it is put right a few times in a row, then left
/// alone for a while, longer each time.
class Truce {
  public:
    using Clock = std::chrono::steady_clock;

    struct Terms {
        std::chrono::seconds window; ///< corrections further apart than this are no fight
        std::chrono::seconds
            first; ///< how long the first rest lasts; each further one twice as long, up to 64 times
    };

    /// Called when something is about to be put right once more. True if it is to be left alone after that.
    bool correct(const Terms& terms, Clock::time_point now);
    [[nodiscard]] bool holds(Clock::time_point now) const { return now < until_; }
    [[nodiscard]] unsigned corrections() const { return corrections_; } ///< in a row, lately

  private:
    unsigned corrections_ = 0;
    Clock::time_point last_{};
    Clock::time_point until_{};
};

/// Says that a fight was found, and that this change is the last for a while.
void tell_of_fight(Log& log, const planner::Action& action);

} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "events/sources.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace affinityd::events::test {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A loop that a test turns by hand.
class Turning {
  public:
    Turning() {
        sd_event* raw = nullptr;
        EXPECT_GE(sd_event_new(&raw), 0);
        event_.reset(raw);
    }
    [[nodiscard]] sd_event* event() const { return event_.get(); }
    template <class Done>
    bool until(Done done, milliseconds patience = milliseconds(20000)) const {
        for (const auto end = steady_clock::now() + patience; !done(); sd_event_run(event_.get(), 10'000))
            if (steady_clock::now() > end) return false;
        return true;
    }
    void turn_for(milliseconds time) const {
        until([] { return false; }, time);
    }

  private:
    LoopHandle event_;
};

} // namespace affinityd::events::test

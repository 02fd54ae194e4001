// SPDX-License-Identifier: Apache-2.0
// Work that nobody waits for: in short turns, a twentieth of a CPU, and for no longer than allowed.
#include "base/clock.hpp"
#include "locality/pace.hpp"

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace affinityd::locality {
namespace {

using namespace std::chrono_literals;
using Clock = Pace::Clock;

void work_for(std::chrono::nanoseconds span) {
    const auto end = thread_time() + span;
    while (thread_time() < end) {
    }
}

TEST(Pace, TakesATwentiethOfACpuInShortTurns) {
    Pace pace({}, 10s);
    const auto begun = Clock::now();
    const auto used_before = thread_time();
    std::vector<std::chrono::nanoseconds> turns;
    auto turn_begun = thread_time();
    auto last = Clock::now();
    while (turns.size() < 21) {
        work_for(20us);
        ASSERT_TRUE(pace.goes_on());
        const auto now = Clock::now();
        if (now - std::exchange(last, now) < 2ms) continue; // it did not pause, or hardly
        turns.push_back(thread_time() - turn_begun);
        turn_begun = thread_time();
    }
    const auto used = thread_time() - used_before;
    EXPECT_LT(used, (Clock::now() - begun) / 10) << "a busy machine makes the pauses longer only";
    std::ranges::sort(turns);
    EXPECT_LT(turns[10], 2ms) << "a hypervisor may make some of them longer";
}

TEST(Pace, ALongPieceOfWorkIsFollowedByALongPause) {
    Pace pace({}, 10s);
    work_for(5ms);
    const auto begun = Clock::now();
    ASSERT_TRUE(pace.goes_on());
    EXPECT_GE(Clock::now() - begun, 19 * 5ms);
}

TEST(Pace, EndsWhenItsTimeIsOverOrStopIsRequested) {
    Pace none({}, 0s);
    EXPECT_FALSE(none.goes_on());
    Pace brief({}, 2ms);
    work_for(3ms);
    EXPECT_FALSE(brief.goes_on());
    EXPECT_FALSE(brief.goes_on()) << "once over, it stays so";
    std::stop_source source;
    Pace stopped(source.get_token(), 10s);
    source.request_stop();
    work_for(100ms); // after which it would pause for two seconds
    const auto begun = Clock::now();
    EXPECT_FALSE(stopped.goes_on());
    EXPECT_LT(Clock::now() - begun, 1s);
}

} // namespace
} // namespace affinityd::locality

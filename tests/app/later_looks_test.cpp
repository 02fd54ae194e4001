// SPDX-License-Identifier: Apache-2.0
#include "app/later_looks.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace affinityd::app {
namespace {

using namespace std::chrono_literals;

class LaterLooksTest : public testing::Test {
  protected:
    /// When somebody was due, after the beginning, in ms, as far as the next ten seconds go.
    std::vector<long> times() {
        std::vector<long> times;
        while (looks_.next_due() <= begin_ + 10s) {
            const auto due = looks_.next_due();
            EXPECT_FALSE(looks_.take_due(due - 1us));
            EXPECT_TRUE(looks_.take_due(due));
            times.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(due - begin_).count());
        }
        return times;
    }
    LaterLooks looks_;
    const LaterLooks::Clock::time_point begin_{1h};
};

TEST_F(LaterLooksTest, ASeriesHasGrowingDistancesAndAnEnd) {
    looks_.begin_series(10, 0, begin_);
    EXPECT_EQ(times(), (std::vector<long>{100, 200, 400, 600, 800, 1000, 1500, 2000, 3000, 5000}));
    EXPECT_EQ(looks_.size(), 0U);
    EXPECT_EQ(looks_.next_due(), LaterLooks::Clock::time_point::max());
}

TEST_F(LaterLooksTest, ASeriesThatBeginsAnewForgetsHowFarItWas) {
    looks_.begin_series(10, 0, begin_ - 2500ms);
    looks_.begin_series(10, 0, begin_);
    EXPECT_EQ(times().size(), 10U);
}

TEST_F(LaterLooksTest, WhoIsLookedAtLateIsLookedAtOnceForAllThatWasMissed) {
    looks_.begin_series(10, 0, begin_);
    EXPECT_TRUE(looks_.take_due(begin_ + 1600ms));
    EXPECT_FALSE(looks_.take_due(begin_ + 1600ms));
    EXPECT_EQ(times(), (std::vector<long>{2000, 3000, 5000}));
}

TEST_F(LaterLooksTest, OneTimeIsKeptBesideASeries) {
    looks_.begin_series(10, 7, begin_);
    looks_.look_at(10, 7, begin_ + 400ms);
    looks_.look_at(10, 7, begin_ + 800ms); // instead
    const auto first = looks_.take_due(begin_ + 100ms);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->pid, 10);
    EXPECT_EQ(first->user, 7U);
    looks_.end_series(10);
    EXPECT_EQ(times(), (std::vector<long>{800}));
    looks_.end_series(10); // nobody's
}

TEST_F(LaterLooksTest, OneUserLeavesRoomForOthersAndAllOfThemAreBounded) {
    for (int pid = 1; pid <= 10'000; ++pid)
        looks_.begin_series(pid, 1000, begin_);
    EXPECT_EQ(looks_.size(), 4096U);
    looks_.begin_series(20'000, 0, begin_);
    EXPECT_EQ(looks_.size(), 4097U);
    for (int pid = 1; pid <= 10'000; ++pid)
        looks_.forget(pid);
    EXPECT_EQ(looks_.size(), 1U);
    for (int pid = 1; pid <= 50'000; ++pid)
        looks_.look_at(pid, static_cast<uid_t>(pid % 10), begin_);
    EXPECT_EQ(looks_.size(), 16'384U);
    looks_.forget(20'000);
    looks_.begin_series(60'000, 1000, begin_);
    EXPECT_EQ(looks_.size(), 16'384U) << "who has gone leaves room";
}

} // namespace
} // namespace affinityd::app

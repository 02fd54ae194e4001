// SPDX-License-Identifier: Apache-2.0
#include "app/steer_guard.hpp"

#include <gtest/gtest.h>

namespace affinityd::app {
namespace {

using inventory::AcceptSockets;
using std::chrono::seconds;

class Guard : public testing::Test {
  protected:
    /// Two workers, with so many connections, every five seconds for so long. True: it was withdrawn once.
    bool watch(seconds duration, std::size_t first, std::size_t second) {
        bool is_withdrawn = false;
        for (const auto end = now_ + duration; now_ < end; now_ += seconds(5)) {
            const AcceptSockets one{{1, 1}, 0, {{101, 6, 80, {80}, true, -1, {1}, first}}, 0};
            const AcceptSockets other{{2, 1}, 0, {{102, 6, 80, {80}, true, -1, {2}, second}}, 0};
            const std::vector<const AcceptSockets*> all{&one, &other};
            const auto share = guard_.see("web", all, now_);
            EXPECT_FALSE(share && is_withdrawn) << "it is told once";
            is_withdrawn |= share.has_value();
        }
        return is_withdrawn;
    }
    SteerGuard guard_;
    SteerGuard::Clock::time_point now_{std::chrono::hours(1)};
};

TEST_F(Guard, WithdrawsWithinNinetySeconds) {
    EXPECT_FALSE(watch(seconds(300), 50, 60));
    EXPECT_TRUE(watch(seconds(90), 100, 2));
    EXPECT_TRUE(guard_.is_withdrawn("web", now_));
    EXPECT_FALSE(guard_.is_withdrawn("other", now_));
    EXPECT_GT(guard_.next_trial(now_), now_);
}

TEST_F(Guard, TriesAgainAfterLongerAndLonger) {
    std::vector<SteerGuard::Clock::duration> pauses;
    for (int trial = 0; trial < 6; ++trial) {
        ASSERT_TRUE(watch(seconds(90), 100, 0)) << trial;
        const auto until = guard_.next_trial(now_);
        pauses.push_back(std::chrono::ceil<std::chrono::minutes>(until - now_));
        now_ = until;
        EXPECT_FALSE(guard_.is_withdrawn("web", now_));
    }
    for (std::size_t i = 1; i < pauses.size(); ++i)
        EXPECT_GE(pauses[i], pauses[i - 1]);
    EXPECT_LE(pauses.front(), SteerGuard::first_pause);
    EXPECT_GT(pauses.back(), SteerGuard::longest_pause - std::chrono::minutes(2));
    EXPECT_LE(pauses.back(), SteerGuard::longest_pause);
}

TEST_F(Guard, ForgetsLongPausesWhenItWentWellForAsLong) {
    ASSERT_TRUE(watch(seconds(90), 100, 0));
    now_ = guard_.next_trial(now_);
    EXPECT_FALSE(watch(SteerGuard::first_pause + std::chrono::minutes(5), 50, 50));
    ASSERT_TRUE(watch(seconds(120), 100, 0));
    EXPECT_LE(guard_.next_trial(now_) - now_, SteerGuard::first_pause);
}

TEST_F(Guard, ForgetsPoliciesThatDoNotSteer) {
    ASSERT_TRUE(watch(seconds(90), 100, 0));
    guard_.keep_only([](const std::string&) { return false; });
    EXPECT_FALSE(guard_.is_withdrawn("web", now_));
    EXPECT_EQ(guard_.next_trial(now_), SteerGuard::Clock::time_point::max());
}

} // namespace
} // namespace affinityd::app

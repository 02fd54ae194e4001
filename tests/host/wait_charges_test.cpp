// SPDX-License-Identifier: Apache-2.0
#include "host/wait_charges.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace affinityd::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr uid_t taker = 1000, neighbour = 1001;
constexpr auto at_first = WaitCharges::Clock::time_point{} + std::chrono::hours(1);

TEST(WaitCharges, ASecondIsNotTooMuch) {
    WaitCharges all;
    all.add(taker, seconds(1), at_first);
    EXPECT_FALSE(all.is_too_much(taker, at_first));
    EXPECT_FALSE(all.is_too_much(at_first));
    all.add(taker, milliseconds(1), at_first);
    EXPECT_TRUE(all.is_too_much(taker, at_first));
    EXPECT_TRUE(all.is_too_much(at_first));
    EXPECT_FALSE(all.is_too_much(neighbour, at_first));
}

TEST(WaitCharges, WhoTookALittleMoreIsAvoidedForALittleWhile) {
    WaitCharges all;
    all.add(taker, milliseconds(1100), at_first);
    EXPECT_TRUE(all.is_too_much(taker, at_first + seconds(59)));
    EXPECT_FALSE(all.is_too_much(taker, at_first + seconds(61)));
    all.add(taker, milliseconds(1), at_first + seconds(61));
    EXPECT_FALSE(all.is_too_much(taker, at_first + seconds(61)));
    all.add(taker, milliseconds(10), at_first + seconds(61));
    EXPECT_TRUE(all.is_too_much(taker, at_first + seconds(61)));
}

TEST(WaitCharges, WhoTookVeryMuchIsAvoidedForTenMinutes) {
    WaitCharges all;
    all.add(taker, minutes(5), at_first);
    EXPECT_TRUE(all.is_too_much(taker, at_first + minutes(10) - seconds(1)));
    EXPECT_FALSE(all.is_too_much(taker, at_first + minutes(10)));
}

/// Whoever takes what he can at once, and then again and again as soon as he is not avoided.
TEST(WaitCharges, NobodyTakesMoreThanASecondInTenMinutesForLong) {
    WaitCharges all;
    milliseconds taken{0};
    for (auto now = at_first; now < at_first + std::chrono::hours(10); now += milliseconds(100)) {
        if (all.is_too_much(taker, now)) continue;
        all.add(taker, milliseconds(105), now);
        taken += milliseconds(105);
    }
    EXPECT_LE(taken, seconds(62)) << "ten hours, and the second at the beginning";
    EXPECT_GE(taken, seconds(59)) << "and is not avoided for longer than that";
}

TEST(WaitCharges, EightCallsThatAreAwayAreTooMuch) {
    WaitCharges all;
    for (unsigned i = 0; i < WaitCharges::most_away; ++i) {
        EXPECT_FALSE(all.is_too_much(taker, at_first)) << i;
        all.add_away(taker, at_first);
    }
    EXPECT_TRUE(all.is_too_much(at_first));
    for (uid_t one = 10'000; one < 10'000 + WaitCharges::most_persons; ++one)
        all.add(one, seconds(1), at_first);
    EXPECT_TRUE(all.is_too_much(taker, at_first + std::chrono::hours(5))) << "he has not made room";
    all.end_away(taker);
    EXPECT_FALSE(all.is_too_much(taker, at_first));
    all.end_away(neighbour); // of whom nothing is known
    EXPECT_FALSE(all.is_too_much(neighbour, at_first));
}

TEST(WaitCharges, WhatIsForgivenWasNotWaitedFor) {
    WaitCharges all;
    all.add(taker, minutes(5), at_first);
    for (unsigned i = 0; i < WaitCharges::most_away; ++i)
        all.add_away(neighbour, at_first);
    all.forgive();
    EXPECT_FALSE(all.is_too_much(taker, at_first));
    EXPECT_TRUE(all.is_too_much(neighbour, at_first)) << "these are away";
}

TEST(WaitCharges, TheOneWhoTookLeastMakesRoom) {
    WaitCharges all;
    all.add(0, seconds(2), at_first);
    for (uid_t one = 1; one <= WaitCharges::most_persons; ++one)
        all.add(one, milliseconds(one), at_first);
    EXPECT_TRUE(all.is_too_much(0, at_first));
    all.add(1, milliseconds(1000), at_first);
    EXPECT_FALSE(all.is_too_much(1, at_first)) << "the millisecond is forgotten";
}

} // namespace
} // namespace affinityd::host

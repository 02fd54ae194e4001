// SPDX-License-Identifier: Apache-2.0
#include "host/wait_charges.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace affinityd::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr uid_t user = 1000, other = 1001;
constexpr auto start = WaitCharges::Clock::time_point{} + std::chrono::hours(1);

TEST(WaitCharges, ASecondIsNotTooMuch) {
    WaitCharges all;
    all.add(user, seconds(1), start);
    EXPECT_FALSE(all.is_too_much(user, start));
    EXPECT_FALSE(all.is_too_much(start));
    all.add(user, milliseconds(1), start);
    EXPECT_TRUE(all.is_too_much(user, start));
    EXPECT_TRUE(all.is_too_much(start));
    EXPECT_FALSE(all.is_too_much(other, start));
}

TEST(WaitCharges, WhoTookALittleMoreIsAvoidedForALittleWhile) {
    WaitCharges all;
    all.add(user, milliseconds(1100), start);
    EXPECT_TRUE(all.is_too_much(user, start + seconds(59)));
    EXPECT_FALSE(all.is_too_much(user, start + seconds(61)));
    all.add(user, milliseconds(1), start + seconds(61));
    EXPECT_FALSE(all.is_too_much(user, start + seconds(61)));
    all.add(user, milliseconds(10), start + seconds(61));
    EXPECT_TRUE(all.is_too_much(user, start + seconds(61)));
}

TEST(WaitCharges, WhoTookVeryMuchIsAvoidedForTenMinutes) {
    WaitCharges all;
    all.add(user, minutes(5), start);
    EXPECT_TRUE(all.is_too_much(user, start + minutes(10) - seconds(1)));
    EXPECT_FALSE(all.is_too_much(user, start + minutes(10)));
}

/// Whoever takes what he can at once, and then again and again as soon as he is not avoided.
TEST(WaitCharges, NobodyTakesMoreThanASecondInTenMinutesForLong) {
    WaitCharges all;
    milliseconds taken{0};
    for (auto now = start; now < start + std::chrono::hours(10); now += milliseconds(100)) {
        if (all.is_too_much(user, now)) continue;
        all.add(user, milliseconds(105), now);
        taken += milliseconds(105);
    }
    EXPECT_LE(taken, seconds(62)) << "ten hours, and the second at the beginning";
    EXPECT_GE(taken, seconds(59)) << "and is not avoided for longer than that";
}

TEST(WaitCharges, TheOneWhoTookLeastMakesRoom) {
    WaitCharges all;
    all.add(0, seconds(2), start);
    for (uid_t one = 1; one <= WaitCharges::most_persons; ++one)
        all.add(one, milliseconds(one), start);
    EXPECT_TRUE(all.is_too_much(0, start));
    all.add(1, milliseconds(1000), start);
    EXPECT_FALSE(all.is_too_much(1, start)) << "the millisecond is forgotten";
}

} // namespace
} // namespace affinityd::host

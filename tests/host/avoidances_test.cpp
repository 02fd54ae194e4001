// SPDX-License-Identifier: Apache-2.0
#include "host/avoidances.hpp"

#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

namespace affinityd::host {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr Avoidable server{Avoid::process, 4711}, its_namesake{Avoid::inode, 4711};
constexpr auto start = Avoidances::Clock::time_point{} + std::chrono::hours(1);

/// A call on it that is away for a second; when its rest has ended.
Avoidances::Clock::time_point rest(Avoidances& all, Avoidances::Clock::time_point now) {
    all.begin(server, now);
    now += seconds(1);
    all.end(server, now);
    while (all.contain(server, now))
        now += seconds(1);
    return now;
}

TEST(Avoidances, WhatHasNotComeBackIsAvoidedForTenMinutes) {
    Avoidances all;
    EXPECT_FALSE(all.contain(server, start));
    all.begin(server, start);
    EXPECT_TRUE(all.contain(server, start + minutes(10) - seconds(1)));
    EXPECT_FALSE(all.contain(server, start + minutes(10))) << "its number may be another's by now";
    EXPECT_FALSE(all.contain(its_namesake, start));
}

TEST(Avoidances, WhatHasComeBackRestsForTwiceAsLongEachTime) {
    Avoidances all;
    auto now = start;
    for (const int length : {10, 20, 40, 80, 160, 320, 600, 600}) {
        const auto ended = rest(all, now);
        EXPECT_EQ(ended - now, seconds(1 + length));
        now = ended;
    }
}

TEST(Avoidances, WhatGoesWellForTenMinutesIsForgotten) {
    Avoidances all;
    const auto first = rest(all, start);
    const auto second = rest(all, first + minutes(9));
    EXPECT_EQ(second - first - minutes(9), seconds(21));
    EXPECT_EQ(rest(all, second + minutes(10)) - second - minutes(10), seconds(11));
}

TEST(Avoidances, OneThatIsStillAwayKeepsItAvoided) {
    Avoidances all;
    all.begin(server, start);
    all.begin(server, start);
    all.end(server, start + seconds(1));
    EXPECT_TRUE(all.contain(server, start + minutes(9)));
    all.end(server, start + minutes(9));
    EXPECT_TRUE(all.contain(server, start + minutes(9) + seconds(9)));
    EXPECT_FALSE(all.contain(server, start + minutes(9) + seconds(10))) << "both are of one time";
}

TEST(Avoidances, OneThatComesBackAfterHoursIsKnown) {
    Avoidances all;
    all.begin(server, start);
    for (std::uint64_t i = 0; i < 100; ++i)
        all.begin({Avoid::cookie, i}, start + minutes(60));
    all.end(server, start + minutes(60));
    EXPECT_TRUE(all.contain(server, start + minutes(60)));
    all.end(server, start + minutes(60));
    EXPECT_FALSE(all.contain(server, start + minutes(61))) << "an end too many changes nothing";
}

TEST(Avoidances, TheOneThatEndsFirstMakesRoom) {
    Avoidances all;
    all.begin(server, start);
    for (std::uint64_t i = 0; i < Avoidances::most; ++i)
        all.begin({Avoid::inode, i}, start + seconds(1));
    EXPECT_FALSE(all.contain(server, start + seconds(1)));
    EXPECT_TRUE(all.contain({Avoid::inode, 0}, start + seconds(1)));
    EXPECT_TRUE(all.contain({Avoid::inode, Avoidances::most - 1}, start + seconds(1)));
    all.end(server, start + seconds(1));
    EXPECT_FALSE(all.contain(server, start + seconds(1)));
}

TEST(Avoidances, OfAKind) {
    Avoidances all;
    all.begin(server, start);
    EXPECT_TRUE(all.contain(Avoid::process, start));
    EXPECT_FALSE(all.contain(Avoid::user, start));
    EXPECT_FALSE(all.contain(Avoid::process, start + minutes(10)));
}

} // namespace
} // namespace affinityd::host

// SPDX-License-Identifier: Apache-2.0
#include "host/avoidances.hpp"

#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

namespace affinityd::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Avoidable server{Avoid::process, 4711}, its_namesake{Avoid::inode, 4711};
constexpr auto start = Avoidances::Clock::time_point{} + std::chrono::hours(1);

/// A call on it that is away for a second; when its rest has ended.
Avoidances::Clock::time_point rest(Avoidances& all, Avoidances::Clock::time_point now) {
    all.note_stuck(server, now);
    now += seconds(1);
    all.note_back(server, now);
    while (all.contain(server, now))
        now += seconds(1);
    return now;
}

TEST(Avoidances, WhatHasNotComeBackIsAvoidedForTenMinutes) {
    Avoidances all;
    EXPECT_FALSE(all.contain(server, start));
    all.note_stuck(server, start);
    EXPECT_TRUE(all.contain(server, start + minutes(10) - seconds(1)));
    EXPECT_FALSE(all.contain(server, start + minutes(10))) << "its number may be another's by now";
    EXPECT_FALSE(all.contain(its_namesake, start));
}

TEST(Avoidances, ACookieIsNeverAnothers) {
    Avoidances all;
    constexpr Avoidable socket{Avoid::cookie, 4711};
    all.note_stuck(socket, start);
    EXPECT_TRUE(all.contain(socket, start + std::chrono::hours(5)));
    all.note_back(socket, start + std::chrono::hours(5));
    EXPECT_TRUE(all.contain(socket, start + std::chrono::hours(5) + seconds(9)));
    EXPECT_FALSE(all.contain(socket, start + std::chrono::hours(5) + seconds(10)));
}

TEST(Avoidances, WhenRestsAreOverOnlyWhatIsAwayIsAvoided) {
    Avoidances all;
    all.note_stuck(server, start);
    all.note_stuck(its_namesake, start);
    all.note_back(server, start + seconds(1));
    all.end_rests();
    EXPECT_FALSE(all.contain(server, start + seconds(1)));
    EXPECT_TRUE(all.contain(its_namesake, start + seconds(1)));
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

TEST(Avoidances, AfterADayOfTroubleAFewGoodMinutesAreEnough) {
    Avoidances all;
    auto now = start;
    for (int i = 0; i < 144; ++i)
        now = rest(all, now);
    now += minutes(7);
    EXPECT_EQ(rest(all, now) - now, seconds(1 + 10));
}

TEST(Avoidances, EachGoodMinuteTakesBackOneStep) {
    Avoidances all;
    auto now = start;
    for (int i = 0; i < 3; ++i)
        now = rest(all, now); // for 40 s at last
    now += seconds(58);       // and a call is away for another one
    auto ended = rest(all, now);
    EXPECT_EQ(ended - now, seconds(1 + 80));
    now = ended + minutes(2);
    ended = rest(all, now);
    EXPECT_EQ(ended - now, seconds(1 + 40)) << "four steps, less two, and one";
    now = ended + minutes(3);
    ended = rest(all, now);
    EXPECT_EQ(ended - now, seconds(1 + 10));
}

TEST(Avoidances, OneThatHasTroubleEveryFewMinutesKeepsItsShortRests) {
    Avoidances all;
    auto now = start;
    for (int i = 0; i < 20; ++i) {
        const auto ended = rest(all, now);
        EXPECT_EQ(ended - now, seconds(1 + 10));
        now = ended + minutes(2);
    }
}

TEST(Avoidances, OneThatIsStillAwayKeepsItAvoided) {
    Avoidances all;
    all.note_stuck(server, start);
    all.note_stuck(server, start);
    all.note_back(server, start + seconds(1));
    EXPECT_TRUE(all.contain(server, start + minutes(9)));
    all.note_back(server, start + minutes(9));
    EXPECT_TRUE(all.contain(server, start + minutes(9) + seconds(9)));
    EXPECT_FALSE(all.contain(server, start + minutes(9) + seconds(10))) << "both are of one time";
}

TEST(Avoidances, OneThatComesBackAfterHoursIsKnown) {
    Avoidances all;
    all.note_stuck(server, start);
    for (std::uint64_t i = 0; i < 100; ++i)
        all.note_stuck({Avoid::cookie, i}, start + minutes(60));
    EXPECT_FALSE(all.contain(server, start + minutes(60)));
    all.note_back(server, start + minutes(60));
    EXPECT_TRUE(all.contain(server, start + minutes(60) + seconds(9)));
    EXPECT_FALSE(all.contain(server, start + minutes(60) + seconds(10)));
    all.note_back(server, start + minutes(61)); // one too many
    EXPECT_FALSE(all.contain(server, start + minutes(61)));
    EXPECT_EQ(rest(all, start + minutes(62)) - start - minutes(62), seconds(1 + 10)) << "changes nothing";
}

TEST(Avoidances, OfThoseThatRestTheOneThatEndsFirstMakesRoom) {
    Avoidances all;
    all.note_stuck(server, start);
    for (std::uint64_t i = 0; i < Avoidances::most; ++i) {
        all.note_stuck({Avoid::inode, i}, start + minutes(11) + milliseconds(i));
        all.note_back({Avoid::inode, i}, start + minutes(11) + milliseconds(i));
    }
    EXPECT_FALSE(all.contain({Avoid::inode, 0}, start + minutes(11)));
    EXPECT_TRUE(all.contain({Avoid::inode, 1}, start + minutes(11)));
    EXPECT_TRUE(all.contain({Avoid::inode, Avoidances::most - 1}, start + minutes(11)));
    all.note_back(server, start + minutes(11));
    EXPECT_TRUE(all.contain(server, start + minutes(11))) << "what is away has not made room";
}

} // namespace
} // namespace affinityd::host

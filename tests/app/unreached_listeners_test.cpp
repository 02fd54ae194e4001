// SPDX-License-Identifier: Apache-2.0
#include "app/unreached_listeners.hpp"

#include <cstddef>
#include <cstdint>
#include <tuple>

#include <gtest/gtest.h>

namespace affinityd::app {
namespace {

using planner::ListenerCpu;
using std::chrono::hours;
using std::chrono::seconds;
using Clock = UnreachedListeners::Clock;

const ListenerCpu held{101, 1, 0, 6, 80}, resting{102, 2, 0, 6, 80};
constexpr auto start = Clock::time_point{} + hours(1);

TEST(UnreachedListeners, AreTriedAgainAfterTwiceAsLongEachTime) {
    UnreachedListeners all;
    EXPECT_FALSE(all.end_round(start));
    auto now = start;
    for (const int wait : {10, 20, 40, 80, 160, 320, 600, 600}) {
        EXPECT_EQ(all.see_not_put_back(held, "web", now), now == start) << "it is told once";
        const auto next = all.end_round(now);
        ASSERT_EQ(next, now + seconds(wait));
        EXPECT_FALSE(all.see_not_put_back(held, "web", now + seconds(1)));
        EXPECT_EQ(all.end_round(now + seconds(1)), next) << "that was a round for another reason";
        now = *next;
    }
    EXPECT_FALSE(all.end_round(now)) << "it was not seen";
}

TEST(UnreachedListeners, OneThatIsNewIsTriedAgainSoon) {
    UnreachedListeners all;
    auto now = start;
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(all.see_not_put_back(held, "web", now), i == 0);
        now = *all.end_round(now);
    }
    EXPECT_FALSE(all.see_not_put_back(held, "web", now));
    EXPECT_TRUE(all.see_not_put_back(resting, "web", now));
    EXPECT_EQ(all.end_round(now), now + seconds(10));
}

TEST(UnreachedListeners, WhatCouldNotBeLookedAtIsNotTold) {
    UnreachedListeners all;
    all.see(held);
    EXPECT_EQ(all.end_round(start), start + seconds(10));
    EXPECT_TRUE(all.see_not_put_back(held, "web", start + seconds(10))) << "that is another thing";
    EXPECT_FALSE(all.see_not_put_back(held, "web", start + seconds(11)));
}

TEST(UnreachedListeners, WhatIsNotLookedAtInARoundIsNotNewInTheNext) {
    UnreachedListeners all;
    all.see(held);
    all.see(resting);
    auto now = *all.end_round(start);
    for (int i = 0; i < 2; ++i) {
        const bool is_even = i % 2 == 0;
        all.see(is_even ? held : resting);
        all.keep(is_even ? resting : held);
        now = *all.end_round(now);
    }
    EXPECT_EQ(now, start + seconds(10 + 20 + 40));
    all.keep(held);
    EXPECT_TRUE(all.end_round(now));
    EXPECT_FALSE(all.end_round(now));
    all.keep(held);
    EXPECT_FALSE(all.end_round(now)) << "nothing is known of it";
}

/// Whoever holds thousands costs no more in each round than one who holds a hundred.
TEST(UnreachedListeners, OfManyThatAreTriedAgainSomeRest) {
    constexpr auto most = UnreachedListeners::most_again_in_round;
    UnreachedListeners all;
    const auto one = [](std::size_t i) { return ListenerCpu{i + 1, 1, 0, 6, 80}; };
    const auto try_all = [&](std::size_t count) {
        std::size_t tried = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (all.rests(one(i), "web")) continue;
            std::ignore = all.see_not_put_back(one(i), "web", start);
            ++tried;
        }
        EXPECT_TRUE(all.end_round(start));
        return tried;
    };
    EXPECT_EQ(try_all(1000), 1000U) << "none of them was tried before";
    for (int round = 0; round < 3; ++round)
        EXPECT_EQ(try_all(1000), most);
    EXPECT_EQ(try_all(1010), most + 10) << "nobody waits for those of others";
    const auto late = one(2000);
    all.see(late);
    EXPECT_FALSE(all.rests(late, "web")) << "that was no try to put it back";
}

/// One that holds the listeners of a policy keeps none of another from being put back.
TEST(UnreachedListeners, OfOnePolicyKeepNoneOfAnotherWaiting) {
    UnreachedListeners all;
    EXPECT_TRUE(all.see_not_put_back(resting, "other", start));
    for (int round = 0; round < 2; ++round) {
        EXPECT_FALSE(all.rests(resting, "other"));
        for (std::uint64_t cookie = 1000; cookie < 1200; ++cookie) {
            const ListenerCpu one{cookie, 1, 0, 6, 80};
            if (all.rests(one, "web")) continue;
            EXPECT_EQ(all.see_not_put_back(one, "web", start), round == 0);
        }
        EXPECT_EQ(all.rests(ListenerCpu{1000, 1, 0, 6, 80}, "web"), round == 1);
        EXPECT_FALSE(all.rests(resting, "other"));
        EXPECT_FALSE(all.see_not_put_back(resting, "other", start));
        EXPECT_TRUE(all.end_round(start));
    }
}

TEST(UnreachedListeners, AreToldOnceAnHour) {
    UnreachedListeners all;
    int told = 0;
    for (auto now = start; now < start + hours(10); now += seconds(5)) {
        told += all.see_not_put_back(held, "web", now) ? 1 : 0;
        EXPECT_TRUE(all.end_round(now));
    }
    EXPECT_EQ(told, 10);
}

} // namespace
} // namespace affinityd::app

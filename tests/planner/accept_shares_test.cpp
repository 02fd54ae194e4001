// SPDX-License-Identifier: Apache-2.0
#include "planner/accept_shares.hpp"

#include <gtest/gtest.h>

namespace affinityd::planner {
namespace {

using std::chrono::seconds;
using Counts = AcceptShares::Counts;

/// The verdict after that many seconds of looks every five, all alike.
std::optional<AcceptShares::Share> after(int duration, const Counts& counts) {
    AcceptShares shares;
    const AcceptShares::Time begin{};
    for (int second = 0; second <= duration; second += 5)
        shares.see(begin + seconds(second), counts);
    return shares.unfair(begin + seconds(duration));
}

TEST(AcceptShares, AllOnOneWorkerIsUnfairAfterAMinute) {
    EXPECT_FALSE(after(55, {{1, 40}, {2, 0}}));
    const auto share = after(60, {{1, 40}, {2, 0}});
    ASSERT_TRUE(share);
    EXPECT_DOUBLE_EQ(share->busiest, 1);
    EXPECT_EQ(share->workers, 2U);
}

TEST(AcceptShares, TwiceItsShareIsTheLimit) {
    EXPECT_FALSE(after(60, {{1, 500}, {2, 170}, {3, 170}, {4, 160}}));
    EXPECT_TRUE(after(60, {{1, 510}, {2, 170}, {3, 160}, {4, 160}}));
    EXPECT_FALSE(after(60, {{1, 750}, {2, 250}})) << "of two, one cannot have more than twice its share";
    EXPECT_TRUE(after(60, {{1, 760}, {2, 240}}));
}

TEST(AcceptShares, FewConnectionsMayAllBeAtOnePlaceByChance) {
    EXPECT_FALSE(after(60, {{1, 1}, {2, 0}}));
    EXPECT_FALSE(after(60, {{1, 5}, {2, 0}}));
    EXPECT_FALSE(after(60, {{1, 3}, {2, 0}, {3, 0}, {4, 0}}));
    EXPECT_TRUE(after(60, {{1, 12}, {2, 0}}));
    EXPECT_TRUE(after(60, {{1, 8}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}, {8, 0}}));
}

TEST(AcceptShares, NothingIsKnownWithoutConnectionsWorkersOrEnoughLooks) {
    EXPECT_FALSE(after(60, {}));
    EXPECT_FALSE(after(60, {{1, 100}}));
    EXPECT_FALSE(after(60, {{1, 0}, {2, 0}}));
    AcceptShares shares;
    EXPECT_FALSE(shares.unfair({}));
    const AcceptShares::Time begin{};
    shares.see(begin, {{1, 100}, {2, 0}});
    shares.see(begin + seconds(120), {{1, 100}, {2, 0}});
    EXPECT_FALSE(shares.unfair(begin + seconds(120))) << "two looks are no minute";
}

TEST(AcceptShares, WhatWasBeforeTheWindowCountsNoMore) {
    AcceptShares shares;
    const AcceptShares::Time begin{};
    for (int second = 0; second <= 60; second += 5)
        shares.see(begin + seconds(second), {{1, 100}, {2, 0}});
    EXPECT_TRUE(shares.unfair(begin + seconds(60)));
    for (int second = 65; second <= 180; second += 5)
        shares.see(begin + seconds(second), {{1, 50}, {2, 50}});
    EXPECT_FALSE(shares.unfair(begin + seconds(180)));
}

/// Looks every five seconds, the first ones of eight workers, the rest of eight others.
std::optional<AcceptShares::Share> after_restart(int before, int after, std::size_t first_ones) {
    AcceptShares shares;
    AcceptShares::Time now{};
    Counts old, fresh;
    for (std::uint64_t worker = 1; worker <= 8; ++worker) {
        old[worker] = worker == 1 ? 275 : 250;
        fresh[worker + 8] = worker == 1 ? first_ones : 10;
    }
    for (int second = 0; second <= before; second += 5, now += seconds(5))
        shares.see(now, old);
    for (int second = 0; second <= after; second += 5, now += seconds(5))
        shares.see(now, fresh);
    return shares.unfair(now - seconds(5));
}

TEST(AcceptShares, WorkersBeforeARestartDoNotMakeTheirShareUnfair) {
    for (const int seconds_after : {0, 5, 30, 60, 90})
        EXPECT_FALSE(after_restart(120, seconds_after, 10)) << seconds_after;
}

TEST(AcceptShares, WorkersAfterARestartHaveAWindowOfTheirOwn) {
    EXPECT_FALSE(after_restart(120, 55, 100));
    const auto share = after_restart(120, 60, 100);
    ASSERT_TRUE(share);
    EXPECT_EQ(share->workers, 8U);
    EXPECT_NEAR(share->busiest, 100.0 / 170, 1e-9);
}

TEST(AcceptShares, AWorkerThatIsNotSeenForAMomentBeginsNoNewWindow) {
    AcceptShares shares;
    const AcceptShares::Time begin{};
    for (int second = 0; second <= 60; second += 5)
        shares.see(begin + seconds(second),
                   second % 15 == 5 ? Counts{{1, 100}, {2, 0}} : Counts{{1, 100}, {2, 0}, {3, 1}});
    EXPECT_TRUE(shares.unfair(begin + seconds(60)));
}

/// Eight workers of which the first has most connections, looked at every five seconds for ten minutes; each
/// `seconds_between`, the listeners of the last `ended` are those of new workers.
std::optional<AcceptShares::Share> with_replaced(int seconds_between, std::uint64_t ended) {
    AcceptShares shares;
    std::optional<AcceptShares::Share> found;
    for (int second = 0; second <= 600 && !found; second += 5) {
        Counts counts{{1, 200}};
        for (std::uint64_t worker = 2; worker <= 8; ++worker)
            counts[worker > 8 - ended ? worker + 100 * (1 + second / seconds_between) : worker] = 5;
        const AcceptShares::Time now = seconds(second);
        shares.see(now, counts);
        found = shares.unfair(now);
    }
    return found;
}

TEST(AcceptShares, WorkersThatAreReplacedAgainAndAgainDoNotHideHowTheOthersShare) {
    for (const std::uint64_t ended : {1U, 2U}) {
        const auto share = with_replaced(20, ended);
        ASSERT_TRUE(share) << ended;
        EXPECT_EQ(share->workers, 8 - ended);
    }
    EXPECT_FALSE(with_replaced(20, 3)) << "too few are left to compare";
}

TEST(BinomialTail, IsThatOfTables) {
    EXPECT_NEAR(binomial_tail(10, 10, 0.5), 0.0009765625, 1e-12);
    EXPECT_NEAR(binomial_tail(10, 0, 0.5), 1, 1e-9);
    EXPECT_NEAR(binomial_tail(20, 15, 0.5), 0.020694733, 1e-8);
    EXPECT_NEAR(binomial_tail(8, 5, 0.125), 0.00123006105, 1e-9);
    EXPECT_LT(binomial_tail(200000, 60000, 0.125), 1e-12);
    EXPECT_GT(binomial_tail(200000, 25000, 0.125), 0.4);
    EXPECT_EQ(binomial_tail(2'000'000'000, 600'000'000, 0.125), 0) << "without going through all of them";
}

} // namespace
} // namespace affinityd::planner

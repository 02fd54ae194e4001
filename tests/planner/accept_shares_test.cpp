// SPDX-License-Identifier: Apache-2.0
#include "planner/accept_shares.hpp"
#include "planner/unseen_accepts.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace affinityd::planner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Counts = AcceptShares::Counts;
using Time = AcceptShares::Time;

/// The verdict after that many seconds of looks every `between`, with as many new connections at each.
std::optional<AcceptShares::Share> after(int duration, const Counts& counts, int between = 5) {
    AcceptShares shares;
    for (int second = 0; second <= duration; second += between)
        shares.see(seconds(second), counts);
    return shares.unfair();
}

TEST(AcceptShares, AllOnOneWorkerIsUnfairAfterAMinute) {
    EXPECT_FALSE(after(55, {{1, 4}, {2, 0}}));
    const auto share = after(60, {{1, 4}, {2, 0}});
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

/// The verdict after a minute in which these connections came, all before the second look.
std::optional<AcceptShares::Share> at_once(const Counts& counts) {
    AcceptShares shares;
    Counts none;
    for (const auto& [listener, count] : counts)
        none[listener] = 0;
    for (int second = 0; second <= 60; second += 5)
        shares.see(seconds(second), second == 5 ? counts : none);
    return shares.unfair();
}

TEST(AcceptShares, FewConnectionsMayAllBeAtOnePlaceByChance) {
    EXPECT_FALSE(at_once({{1, 1}, {2, 0}})) << "one client";
    EXPECT_FALSE(at_once({{1, 3}, {2, 0}})) << "three clients";
    EXPECT_FALSE(at_once({{1, 3}, {2, 0}, {3, 0}, {4, 0}}));
    EXPECT_FALSE(at_once({{1, 12}, {2, 0}}));
    EXPECT_TRUE(at_once({{1, 24}, {2, 0}}));
    EXPECT_TRUE(at_once({{1, 8}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}, {8, 0}}));
    EXPECT_TRUE(at_once({{1, 1000}, {2, 0}})) << "a thousand from one queue";
}

TEST(AcceptShares, NothingIsKnownWithoutConnectionsWorkersOrLooks) {
    EXPECT_FALSE(after(60, {}));
    EXPECT_FALSE(after(60, {{1, 100}}));
    EXPECT_FALSE(after(60, {{1, 0}, {2, 0}}));
    EXPECT_FALSE(after(300, {{1, std::nullopt}, {2, std::nullopt}}));
    EXPECT_FALSE(AcceptShares().unfair());
}

/// Half a minute is fair and half is not: who looks more often at one of them counts it no more than once.
TEST(AcceptShares, ManyLooksAtOneMomentCountNoMoreThanAFewAtAnother) {
    for (const bool is_last : {false, true}) {
        AcceptShares shares;
        Time now{};
        const Counts none{{1, 0}, {2, 0}, {3, 0}, {4, 0}};
        const auto go = [&](bool is_fair, milliseconds between) {
            for (const auto end = now + seconds(30); now < end;) {
                now += between;
                const auto each = static_cast<std::size_t>(between / milliseconds(100));
                shares.see(now, is_fair
                                    ? Counts{{1, 4 * each}, {2, 4 * each}, {3, 4 * each}, {4, 4 * each}}
                                    : Counts{{1, 10 * each}, {2, 2 * each}, {3, 2 * each}, {4, 2 * each}});
            }
        };
        shares.see(now, none);
        go(true, is_last ? seconds(10) : milliseconds(100));
        go(false, is_last ? milliseconds(100) : seconds(10));
        EXPECT_FALSE(shares.unfair()) << "the busiest has 44 % of four workers'";
    }
}

TEST(AcceptShares, ABurstOfLooksIsNoMinute) {
    AcceptShares shares;
    for (int look = 0; look <= 200; ++look)
        shares.see(milliseconds(50 * look), {{1, 10}, {2, 0}});
    EXPECT_FALSE(shares.unfair()) << "ten seconds";
    for (int look = 201; look <= 1200; ++look)
        shares.see(milliseconds(50 * look), {{1, 10}, {2, 0}});
    EXPECT_TRUE(shares.unfair());
}

TEST(AcceptShares, OneLookInThirtySecondsIsEnough) {
    EXPECT_FALSE(after(30, {{1, 40}, {2, 0}}, 30));
    EXPECT_TRUE(after(60, {{1, 40}, {2, 0}}, 30));
    EXPECT_FALSE(after(300, {{1, 40}, {2, 40}}, 30));
}

/// Whenever a thousand clients come, and whenever is looked, they are in a minute that is judged.
TEST(AcceptShares, WhatComesAtOnceIsNeverMissed) {
    for (const int between : {1, 5, 7, 30})
        for (int come = 0; come <= 130; ++come) {
            AcceptShares shares;
            int since = 0;
            bool is_unfair = false;
            for (int second = 0; second <= come + 90; second += between) {
                const bool have_come = second > come && second - between <= come;
                shares.see(seconds(second), {{1, have_come ? 1000U : 0U}, {2, 0}});
                is_unfair |= shares.unfair().has_value();
                if (!is_unfair) since = second;
            }
            EXPECT_TRUE(is_unfair) << between << ' ' << come;
            EXPECT_LE(since - come, 90) << between << ' ' << come;
        }
}

TEST(AcceptShares, AClockThatJumpsMakesNoMinute) {
    AcceptShares shares;
    const Counts counts{{1, 100}, {2, 0}};
    for (int second = 0; second <= 20; second += 5)
        shares.see(seconds(second), counts);
    const Time jump = std::chrono::hours(8);
    for (int second = 25; second <= 75; second += 5) {
        shares.see(jump + seconds(second), counts);
        EXPECT_FALSE(shares.unfair()) << second << ": nobody has looked for a minute since";
    }
    for (int second = 80; second <= 90; second += 5)
        shares.see(jump + seconds(second), counts);
    EXPECT_TRUE(shares.unfair());
    AcceptShares two;
    two.see({}, counts);
    two.see(seconds(120), counts);
    EXPECT_FALSE(two.unfair()) << "two looks are no minute if nobody looked in between";
}

TEST(AcceptShares, ConnectionsThatWereThereBeforeDoNotCount) {
    AcceptShares shares;
    for (int second = 0; second <= 300; second += 5) {
        shares.see(seconds(second), second == 0 ? Counts{{1, 500}, {2, 0}} : Counts{{1, 2}, {2, 2}});
        EXPECT_FALSE(shares.unfair()) << second;
    }
}

TEST(AcceptShares, WhatWasBeforeTheWindowCountsNoMore) {
    AcceptShares shares;
    for (int second = 0; second <= 60; second += 5)
        shares.see(seconds(second), {{1, 100}, {2, 0}});
    EXPECT_TRUE(shares.unfair());
    for (int second = 65; second <= 130; second += 5)
        shares.see(seconds(second), {{1, 50}, {2, 50}});
    EXPECT_FALSE(shares.unfair());
}

/// Looks every five seconds, the first ones of eight workers, the rest of eight others.
std::optional<AcceptShares::Share> after_restart(int before, int after, std::size_t first_ones) {
    AcceptShares shares;
    Time now{};
    Counts old, fresh;
    for (std::uint64_t worker = 1; worker <= 8; ++worker) {
        old[worker] = worker == 1 ? 275 : 250;
        fresh[worker + 8] = worker == 1 ? first_ones : 10;
    }
    for (int second = 0; second <= before; second += 5, now += seconds(5))
        shares.see(now, old);
    for (int second = 0; second <= after; second += 5, now += seconds(5))
        shares.see(now, fresh);
    return shares.unfair();
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
    for (int second = 0; second <= 60; second += 5)
        shares.see(seconds(second),
                   second % 15 == 5 ? Counts{{1, 100}, {2, 0}} : Counts{{1, 100}, {2, 0}, {3, 1}});
    const auto share = shares.unfair();
    ASSERT_TRUE(share);
    EXPECT_EQ(share->workers, 3U);
}

/// Eight workers of which the first gets most connections, looked at every five seconds for ten minutes; each
/// `seconds_between`, the listeners of the last `ended` are those of new workers.
std::optional<AcceptShares::Share> with_replaced(int seconds_between, std::uint64_t ended) {
    AcceptShares shares;
    std::optional<AcceptShares::Share> found;
    for (int second = 0; second <= 600 && !found; second += 5) {
        Counts counts{{1, 200}};
        for (std::uint64_t worker = 2; worker <= 8; ++worker)
            counts[worker > 8 - ended ? worker + 100 * (1 + second / seconds_between) : worker] = 5;
        shares.see(seconds(second), counts);
        found = shares.unfair();
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

/// What workers with very many connections get is known once a minute, that of the others at each look.
std::optional<AcceptShares::Share> read_once_a_minute(std::size_t busy, std::size_t others, int begin) {
    AcceptShares shares;
    std::optional<AcceptShares::Share> found;
    int last = 0;
    for (int second = 0; second <= 900 && !found; second += 5) {
        Counts counts{{1, std::nullopt}, {2, others}, {3, others}, {4, others}};
        if (second - last >= 60 || second == begin) {
            counts[1] = busy * static_cast<std::size_t>(second - last) / 5;
            last = second;
        }
        shares.see(seconds(second), counts);
        found = shares.unfair();
    }
    return found;
}

TEST(AcceptShares, WhoIsReadOnceAMinuteIsComparedByTime) {
    for (int begin = 0; begin < 60; begin += 5) {
        EXPECT_FALSE(read_once_a_minute(50, 50, begin)) << begin;
        EXPECT_FALSE(read_once_a_minute(90, 50, begin)) << begin;
        const auto share = read_once_a_minute(400, 50, begin);
        ASSERT_TRUE(share) << begin;
        EXPECT_EQ(share->workers, 4U);
        EXPECT_NEAR(share->busiest, 400.0 / 550, 1e-9);
    }
}

/// A week of connections that fall to workers by chance, as many a second on average.
TEST(AcceptShares, ChanceAloneIsNotUnfairInAWeek) {
    std::mt19937 random(7); // NOLINT: the same each time
    for (const std::size_t workers : {2U, 8U, 64U})
        for (const double a_look : {1.0, 2.0, 20.0}) {
            AcceptShares shares;
            std::poisson_distribution<std::size_t> come(a_look);
            std::uniform_int_distribution<std::uint64_t> whose(1, workers);
            std::size_t unfair = 0;
            for (int second = 0; second <= 7 * 24 * 3600; second += 15) {
                Counts counts;
                for (std::uint64_t worker = 1; worker <= workers; ++worker)
                    counts[worker] = 0;
                for (auto left = come(random); left > 0; --left) {
                    auto& count = counts[whose(random)];
                    count = count.value_or(0) + 1;
                }
                shares.see(seconds(second), counts);
                unfair += shares.unfair() ? 1 : 0;
            }
            EXPECT_EQ(unfair, 0U) << workers << " workers, " << a_look << " connections a look";
        }
}

/// Workers to which as many connections come in a look, of which a part is for the port.
struct Sampled {
    std::size_t workers = 0, come = 0;
    double part = 0;  ///< of the connections, those for the port
    double known = 1; ///< of the connections, those whose port can be known
};

/// The first moment at which they are said to be unfair. `taken`: the share of the first worker of what comes
/// to the port.
std::optional<seconds> sampled(const Sampled& of, double taken, seconds duration, unsigned seed) {
    std::mt19937 random(seed); // NOLINT: the same each time
    AcceptShares shares;
    for (seconds now{}; now <= duration; now += seconds(5)) {
        Counts counts;
        inventory::PortSample sample;
        for (std::uint64_t worker = 1; worker <= of.workers; ++worker) {
            const auto others = static_cast<double>(of.workers - 1);
            const double times = (worker == 1 ? taken : (1 - taken) / others) * (others + 1);
            const auto drawn = [&](double mean) {
                return mean > 0 ? std::poisson_distribution<std::size_t>(mean)(random) : 0;
            };
            const std::size_t hers = drawn(of.part * times * static_cast<double>(of.come));
            const std::size_t all = hers + drawn((1 - of.part) * static_cast<double>(of.come));
            const auto asked =
                std::binomial_distribution<std::size_t>(std::min<std::size_t>(all, 128), of.known)(random);
            const double part = all == 0 ? 0 : static_cast<double>(hers) / static_cast<double>(all);
            const auto hits =
                asked == all ? hers : std::binomial_distribution<std::size_t>(asked, part)(random);
            counts[worker] = asked == 0 ? all : all * hits / asked;
            sample += inventory::PortSample::of(all, asked, hits);
        }
        shares.see(now, counts, sample);
        if (shares.unfair()) return now;
    }
    return std::nullopt;
}

TEST(AcceptShares, PortsThatAreKnownOfSomeConnectionsOnlyAreNotUnfairByChance) {
    for (const auto& of :
         {Sampled{8, 1000, 0.08}, Sampled{2, 1000, 0.08}, Sampled{16, 3000, 0.08}, Sampled{4, 400, 0.12},
          Sampled{2, 100'000, 0.001}, Sampled{64, 1000, 0.02}, Sampled{2, 1000, 0.9, 0.1},
          Sampled{8, 1000, 0.9, 0.01}, Sampled{8, 1000, 0.1, 0.01}, Sampled{2, 1000, 0.5, 0.03}})
        for (unsigned seed = 1; seed <= 4; ++seed)
            EXPECT_EQ(sampled(of, 1.0 / static_cast<double>(of.workers), std::chrono::hours(1), seed),
                      std::nullopt)
                << of.workers << " workers, " << of.come << " connections, " << of.part << " for the port, "
                << of.known << " known";
}

TEST(AcceptShares, APortThatIsOneSidedIsFoundAmongOtherConnections) {
    for (const auto& of :
         {Sampled{8, 1000, 0.08}, Sampled{2, 1000, 0.08}, Sampled{8, 1000, 0.9, 0.1}, Sampled{4, 100, 0.05}})
        EXPECT_EQ(sampled(of, 1, std::chrono::minutes(2), 1), seconds(60))
            << of.workers << " workers, " << of.come;
    EXPECT_TRUE(sampled({8, 1000, 0.08}, 0.5, std::chrono::minutes(2), 1));
    EXPECT_TRUE(sampled({2, 10, 0.5}, 1, std::chrono::minutes(2), 1));
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

TEST(UnseenAccepts, AreMostWhereConnectionsAreShort) {
    using std::chrono::seconds;
    const auto watch = [](std::uint64_t opened, std::size_t seen, seconds duration) { // each, in five seconds
        UnseenAccepts accepts;
        for (int i = 0; seconds(5 * i) <= duration; ++i)
            accepts.see(seconds(5 * i), 1000 + opened * static_cast<std::uint64_t>(i), seen);
        return accepts.are_most();
    };
    EXPECT_TRUE(watch(400, 0, seconds(60)));
    EXPECT_FALSE(watch(400, 0, seconds(55))) << "it is not a minute yet";
    EXPECT_FALSE(watch(400, 300, seconds(300)));
    EXPECT_TRUE(watch(400, 150, seconds(300)));
    EXPECT_FALSE(watch(4, 0, seconds(300))) << "they are few";
}

TEST(UnseenAccepts, ACounterThatBeginsAgainSaysNothing) {
    using std::chrono::seconds;
    UnseenAccepts accepts;
    accepts.see(seconds(0), 1'000'000, 0);
    accepts.see(seconds(40), 1'010'000, 0);
    accepts.see(seconds(70), 50, 0); // another network namespace
    EXPECT_FALSE(accepts.are_most());
    accepts.see(seconds(100), 5000, 0);
    accepts.see(seconds(130), 9000, 0);
    EXPECT_TRUE(accepts.are_most());
}

} // namespace
} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
// How local reads are, from counts as the kernel gives them.
#include "locality/locality.hpp"
#include "machine/machines.hpp"

#include <gtest/gtest.h>

namespace affinityd::locality {
namespace {

using machine::test::two_sockets;

bool everybody(int /*pid*/) { return true; }

ReadCount count(int pid, std::optional<unsigned> arrival, unsigned reader, std::uint64_t reads) {
    return {.pid = pid, .arrival = arrival, .reader = reader, .reads = reads};
}

TEST(Nearness, LevelsHoldEachOther) {
    const Nearness near(two_sockets());
    EXPECT_TRUE(near.is_same(NearLevel::cpu, 3, 3));
    EXPECT_FALSE(near.is_same(NearLevel::cpu, 2, 3));
    EXPECT_TRUE(near.is_same(NearLevel::core, 2, 3));
    EXPECT_FALSE(near.is_same(NearLevel::core, 1, 2));
    EXPECT_TRUE(near.is_same(NearLevel::llc, 0, 3));
    EXPECT_FALSE(near.is_same(NearLevel::llc, 3, 4));
    EXPECT_TRUE(near.is_same(NearLevel::node, 4, 7));
    EXPECT_FALSE(near.is_same(NearLevel::node, 0, 7));
}

TEST(Nearness, ACpuThatWentOfflineIsNearItselfOnly) {
    const Nearness near(two_sockets(CpuSet{0, 5}));
    for (const auto level : near_levels) {
        EXPECT_TRUE(near.is_same(level, 5, 5));
        EXPECT_FALSE(near.is_same(level, 5, 4));
        EXPECT_FALSE(near.is_same(level, 0, 1));
        EXPECT_TRUE(near.is_same(level, 900, 900));
    }
    EXPECT_TRUE(near.is_same(NearLevel::llc, 1, 2)) << "what is left of a group has another lowest CPU";
}

// Recorded from nginx with two workers on CPUs 0 and 1, a queue on each, connections dealt by the hash.
TEST(Figures, OfTwoPinnedWorkers) {
    const ReadCounts seen{.counts = {count(10, 0, 0, 5100), count(10, 1, 0, 4900), count(11, 0, 1, 5000),
                                     count(11, 1, 1, 5000)},
                          .names = {{10, "nginx"}, {11, "nginx"}}};
    const auto figures = figures_of(seen, Nearness(two_sockets()), everybody);
    ASSERT_EQ(figures.workers.size(), 2U);
    EXPECT_EQ(figures.total.reads, 20000U);
    EXPECT_NEAR(figures.total.same.cpu, 0.505, 1e-9);
    EXPECT_NEAR(figures.total.chance.cpu, 0.5, 1e-3);
    EXPECT_NEAR(figures.total.same.core, 1, 1e-9) << "0 and 1 are one core here";
    EXPECT_EQ(figures.workers[0].pid, 10);
    EXPECT_NEAR(figures.workers[0].same.cpu, 0.51, 1e-9);
    EXPECT_NEAR(figures.workers[0].chance.cpu, 0.505, 1e-9);
    EXPECT_EQ(figures.matrix.at({1, 0}), 4900U);
}

TEST(Figures, ChanceIsThatOfAllOfTheNameAlsoOfOneWorker) {
    ReadCounts seen;
    for (unsigned worker = 0; worker < 8; ++worker) {
        seen.counts.push_back(count(static_cast<int>(100 + worker), worker, worker, 1000));
        seen.names[static_cast<int>(100 + worker)] = "envoy";
    }
    seen.counts.push_back(count(7, 0, 7, 99999));
    seen.names[7] = "other";
    const auto figures = figures_of(seen, Nearness(two_sockets()), [](int pid) { return pid == 103; });
    ASSERT_EQ(figures.workers.size(), 1U);
    EXPECT_NEAR(figures.total.same.cpu, 1, 1e-9);
    EXPECT_NEAR(figures.total.chance.cpu, 1.0 / 8, 1e-9);
    EXPECT_NEAR(figures.total.chance.core, 1.0 / 4, 1e-9);
    EXPECT_NEAR(figures.total.chance.llc, 1.0 / 2, 1e-9);
}

TEST(Figures, WhatIsNotKnownIsInNoPart) {
    const ReadCounts seen{.counts = {count(10, std::nullopt, 0, 900), count(10, 4, 4, 100)},
                          .names = {{10, "named"}}};
    const auto figures = figures_of(seen, Nearness(two_sockets()), everybody);
    EXPECT_EQ(figures.total.reads, 1000U);
    EXPECT_EQ(figures.total.unknown, 900U);
    EXPECT_NEAR(figures.total.same.cpu, 1, 1e-9);
    EXPECT_EQ(figures.matrix.size(), 1U);
}

TEST(Figures, CountsOfOnePairAddUpOverInterfacesAndProtocols) {
    ReadCounts seen{.counts = {count(10, 1, 2, 3), count(10, 1, 2, 4)}, .names = {{10, "x"}}};
    seen.counts[1].device = 5;
    seen.counts[1].protocol = 17;
    EXPECT_EQ(figures_of(seen, Nearness(two_sockets()), everybody).matrix.at({1, 2}), 7U);
}

TEST(Figures, TheBusiestIsFirstAndAnEmptyListIsNoFault) {
    const ReadCounts seen{.counts = {count(1, 0, 0, 1), count(2, 0, 0, 3), count(3, 0, 0, 2)}, .names = {}};
    const auto figures = figures_of(seen, Nearness(two_sockets()), everybody);
    EXPECT_EQ(figures.workers[0].pid, 2);
    EXPECT_EQ(figures.workers[2].pid, 1);
    const auto none = figures_of({}, Nearness(two_sockets()), everybody);
    EXPECT_TRUE(none.workers.empty());
    EXPECT_EQ(none.total.reads, 0U);
    EXPECT_EQ(none.total.same.cpu, 0);
}

TEST(Figures, OfThousandsOfProcessesAddUp) {
    ReadCounts seen;
    for (int pid = 1; pid <= 20000; ++pid)
        seen.counts.push_back(count(pid, static_cast<unsigned>(pid % 8), static_cast<unsigned>(pid % 2), 1));
    const auto figures = figures_of(seen, Nearness(two_sockets()), everybody);
    EXPECT_EQ(figures.workers.size(), 20000U);
    EXPECT_NEAR(figures.total.same.cpu, 0.25, 1e-9);
}

} // namespace
} // namespace affinityd::locality

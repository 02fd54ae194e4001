// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"
#include "topology/latencies.hpp"

#include <functional>
#include <random>

#include <gtest/gtest.h>

namespace affinityd::topology {
namespace {

using Truth = std::function<double(unsigned a, unsigned b)>;

/// With noise as measurements have it: `noise` is the greatest relative deviation; one pair in `outlier`
/// takes three times as long (0: none does), unless it is all that is known of its core.
Latencies measured(unsigned cpus, const Truth& truth, double noise, unsigned outlier, unsigned seed) {
    std::mt19937 random(seed);
    const auto part = [&random] { return static_cast<double>(random() % 10001) / 5000 - 1; };
    Latencies latencies(CpuSet::range(0, cpus - 1));
    for (unsigned b = 0; b < cpus; ++b)
        for (unsigned a = 0; a < b; ++a) {
            const bool is_odd = outlier > 0 && random() % outlier == 0 && truth(a, b) > 10;
            latencies.set(a, b, truth(a, b) * (1 + noise * part()) * (is_odd ? 3 : 1));
        }
    return latencies;
}

std::vector<std::string> lists(const LatencyLevel& level) {
    std::vector<std::string> texts;
    for (const auto& group : level.groups)
        texts.push_back(group.to_list());
    return texts;
}

/// Two sockets of two LLC groups of four cores with two hardware threads: siblings 0 and 16, 1 and 17, ...
double nested(unsigned a, unsigned b) {
    const unsigned core_a = a % 16, core_b = b % 16;
    if (core_a == core_b) return 8;
    if (core_a / 4 == core_b / 4) return 25;
    return core_a / 8 == core_b / 8 ? 90 : 200;
}

TEST(LatencyLevels, AreFoundFineToCoarse) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        const auto levels = latency_levels(measured(32, nested, 0.06, 200, seed));
        ASSERT_EQ(levels.size(), 3U) << "seed " << seed;
        EXPECT_EQ(levels[0].groups.size(), 16U);
        EXPECT_EQ(lists(levels[0])[3], "3,19");
        EXPECT_EQ(lists(levels[1]),
                  (std::vector<std::string>{"0-3,16-19", "4-7,20-23", "8-11,24-27", "12-15,28-31"}));
        EXPECT_EQ(lists(levels[2]), (std::vector<std::string>{"0-7,16-23", "8-15,24-31"}));
        EXPECT_NEAR(levels[0].ns, 8, 0.5);
        EXPECT_NEAR(levels[1].ns, 25, 1);
        EXPECT_NEAR(levels[2].ns, 90, 3);
    }
}

TEST(LatencyLevels, AreNoneWhereTheMachineIsUniform) {
    for (const unsigned cpus : {2U, 3U, 4U, 8U, 16U, 64U})
        for (unsigned seed = 0; seed < 40; ++seed) {
            const auto noise = 0.02 * (seed % 10); // up to 18 % either way
            EXPECT_TRUE(latency_levels(measured(
                                           cpus, [](auto, auto) { return 40.0; }, noise, 0, seed))
                            .empty())
                << cpus << " CPUs, seed " << seed;
        }
}

TEST(LatencyLevels, AreNoneForAMesh) {
    // Eight by eight stops: 40 ns and 1 ns for each hop.
    const auto mesh = [](unsigned a, unsigned b) {
        const auto away = [](unsigned x, unsigned y) { return x > y ? x - y : y - x; };
        return 40.0 + away(a % 8, b % 8) + away(a / 8, b / 8);
    };
    for (unsigned seed = 0; seed < 10; ++seed)
        EXPECT_TRUE(latency_levels(measured(64, mesh, 0.03, 0, seed)).empty()) << seed;
}

TEST(LatencyLevels, PassOverACpuThatIsSlowToAll) {
    const auto slow_first = [](unsigned a, unsigned b) { return a == 0 || b == 0 ? 60.0 : 40.0; };
    EXPECT_TRUE(latency_levels(measured(8, slow_first, 0.03, 0, 1)).empty());
    const auto in_sockets = [&](unsigned a, unsigned b) {
        return slow_first(a, b) + (a / 6 == b / 6 ? 0 : 80);
    };
    const auto levels = latency_levels(measured(12, in_sockets, 0.03, 0, 1));
    ASSERT_EQ(levels.size(), 1U);
    EXPECT_EQ(lists(levels[0]), (std::vector<std::string>{"0-5", "6-11"})) << "where it is nearest after all";
}

TEST(LatencyLevels, LetCpusStandAlone) {
    // Four performance cores with two hardware threads, eight efficiency cores without.
    const auto hybrid = [](unsigned a, unsigned b) { return a < 8 && b < 8 && a / 2 == b / 2 ? 7.0 : 36.0; };
    const auto levels = latency_levels(measured(16, hybrid, 0.05, 0, 3));
    ASSERT_EQ(levels.size(), 1U);
    EXPECT_EQ(lists(levels[0]), (std::vector<std::string>{"0-1", "2-3", "4-5", "6-7", "8", "9", "10", "11",
                                                          "12", "13", "14", "15"}));
}

TEST(LatencyLevels, NeedNoMatrixWithoutHoles) {
    // Hardware threads; one thread of each core within an LLC group; four pairs between two of these.
    const auto whole = measured(32, nested, 0.03, 0, 5);
    Latencies part(CpuSet::range(0, 31));
    for (unsigned b = 0; b < 32; ++b)
        for (unsigned a = 0; a < b; ++a) {
            const bool is_sibling = a % 16 == b % 16, is_near = a < 16 && b < 16 && a / 4 == b / 4;
            const bool is_chosen = a < 16 && b < 16 && (a + 3) % 4 == b % 4;
            if (is_sibling || is_near || is_chosen) part.set(a, b, *whole.ns(a, b));
        }
    ASSERT_LT(part.measured(), whole.measured() / 4);
    const auto levels = latency_levels(part);
    ASSERT_EQ(levels.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i)
        EXPECT_EQ(lists(levels[i]), lists(latency_levels(whole)[i]));
}

TEST(LatencyLevels, OfWhatWasHardlyMeasuredAreNone) {
    EXPECT_TRUE(latency_levels(Latencies()).empty());
    EXPECT_TRUE(latency_levels(Latencies(CpuSet::range(0, 63))).empty());
    Latencies one(CpuSet::range(0, 63));
    one.set(3, 4, 20);
    EXPECT_TRUE(latency_levels(one).empty());
}

TEST(LatencyLevels, Of256CpusAreFoundQuickly) {
    const auto large = [](unsigned a, unsigned b) {
        const unsigned core_a = a % 128, core_b = b % 128;
        if (core_a == core_b) return 8.0;
        if (core_a / 8 == core_b / 8) return 25.0;
        return core_a / 64 == core_b / 64 ? 95.0 : 210.0;
    };
    const auto latencies = measured(256, large, 0.06, 500, 1);
    const double begin = monotonic_seconds();
    const auto levels = latency_levels(latencies);
    const double seconds = monotonic_seconds() - begin;
    ASSERT_EQ(levels.size(), 3U);
    EXPECT_EQ(levels[0].groups.size(), 128U);
    EXPECT_EQ(levels[1].groups.size(), 16U);
    EXPECT_EQ(levels[2].groups.size(), 2U);
    std::printf("measured: levels of 256 CPUs in %.2f s\n", seconds);
    EXPECT_LT(seconds, 20) << "a second is meant; this machine may be busy";
}

} // namespace
} // namespace affinityd::topology

// SPDX-License-Identifier: Apache-2.0
#include "accounting/softirq_time.hpp"

#include <gtest/gtest.h>

namespace affinityd::accounting {
namespace {

TEST(NetworkSoftirqs, TakeTheirShareOfTheTimeByTheirNumber) {
    constexpr const char* stat = "cpu  10 0 20 3000 5 1 400 0 0 0\ncpu0 10 0 20 3000 5 1 400 0 0 0\n";
    constexpr const char* softirqs =
        "                    CPU0       CPU1\n          HI:          0          0\n       TIMER:        100  "
        "      200\n"
        "      NET_TX:         50          0\n      NET_RX:        150         100\n";
    EXPECT_DOUBLE_EQ(network_softirq_seconds(stat, softirqs, 100).value(), 4.0 * 300 / 600);
    EXPECT_FALSE(network_softirq_seconds("", softirqs, 100));
    EXPECT_FALSE(network_softirq_seconds(stat, "", 100));
    EXPECT_FALSE(network_softirq_seconds("cpu  1 2 3", "NET_RX: x y\n", 100));
}

TEST(InterruptSeconds, AreThoseOfEachCpu) {
    constexpr const char* stat = "cpu  1 2 3 4 5 60 70 8\ncpu0 1 2 3 4 5 100 50 8\ncpu17 1 2 3 4 5 0 20 8 9\n"
                                 "cpu3 1 2 3\ncpux 1 2 3 4 5 6 7 8\nintr 5 cpu9 1 2 3 4 5 6 7\n";
    EXPECT_EQ(interrupt_seconds(stat, 100), (std::map<unsigned, double>{{0, 1.5}, {17, 0.2}}));
    EXPECT_TRUE(interrupt_seconds("", 100).empty());
}

} // namespace
} // namespace affinityd::accounting

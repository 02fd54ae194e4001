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

} // namespace
} // namespace affinityd::accounting

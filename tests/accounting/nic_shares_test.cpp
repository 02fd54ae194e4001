// SPDX-License-Identifier: Apache-2.0
// Which NICs serve a process whose connections come and go.
#include "accounting/nic_usage.hpp"

#include <gtest/gtest.h>

namespace affinityd::accounting {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Names = std::vector<std::string>;

class NicSharesTest : public testing::Test {
  protected:
    void see(const NicSockets& seen, seconds after = minutes(1)) {
        now_ += after;
        shares_.add(seen, now_);
    }
    NicShares shares_;
    seconds now_ = std::chrono::hours(1);
};

TEST_F(NicSharesTest, NothingSeenIsNothingKnown) {
    see({});
    EXPECT_EQ(shares_.names(), Names{});
}

TEST_F(NicSharesTest, TheFirstSightCountsAtOnce) {
    see({{"eth1", 1}, {"eth0", 3}});
    EXPECT_EQ(shares_.names(), (Names{"eth0", "eth1"}));
}

TEST_F(NicSharesTest, ClientsOnChangingNicsMoveNoTask) {
    see({{"eth0", 1}, {"eth1", 1}});
    for (unsigned i = 0; i < 50; ++i) {
        see({{i % 3 == 0 ? "eth0" : "eth1", 1 + i % 5}});
        EXPECT_EQ(shares_.names(), (Names{"eth0", "eth1"})) << i;
    }
}

TEST_F(NicSharesTest, WithoutClientsItIsServedAsBefore) {
    see({{"eth0", 1}});
    for (unsigned i = 0; i < 100; ++i)
        see({}, minutes(10));
    EXPECT_EQ(shares_.names(), Names{"eth0"});
}

TEST_F(NicSharesTest, AFewSocketsAmongManySayNothing) {
    see({{"eth0", 1000}, {"management", 1}});
    EXPECT_EQ(shares_.names(), Names{"eth0"});
}

TEST_F(NicSharesTest, ANicThatTakesOverServesAfterAPassOrTwoAndTheOtherIsLeftInTheEnd) {
    see({{"eth0", 10}});
    see({{"eth1", 10}});
    EXPECT_EQ(shares_.names(), (Names{"eth0", "eth1"}));
    for (unsigned i = 0; i < 15; ++i)
        see({{"eth1", 10}});
    EXPECT_EQ(shares_.names(), Names{"eth1"});
}

TEST_F(NicSharesTest, AStormOfPassesIsNoLongTime) {
    see({{"eth0", 10}});
    for (unsigned i = 0; i < 10; ++i)
        see({{"eth1", 10}}, seconds(i % 2));
    EXPECT_EQ(shares_.names(), Names{"eth0"});
}

TEST_F(NicSharesTest, BetweenTheTwoLimitsWhatServesGoesOnToServeAndWhatDoesNotWaits) {
    see({{"eth0", 90}, {"eth1", 10}});
    EXPECT_EQ(shares_.names(), (Names{"eth0", "eth1"}));
    for (unsigned i = 0; i < 100; ++i)
        see({{"eth0", 95}, {"eth1", 5}, {"eth2", 5}});
    EXPECT_EQ(shares_.names(), (Names{"eth0", "eth1"}));
}

TEST_F(NicSharesTest, AClockThatStandsStillForgetsNothing) {
    see({{"eth0", 10}});
    see({{"eth1", 10}}, seconds(0));
    see({{"eth1", 10}}, -minutes(5));
    EXPECT_EQ(shares_.names(), Names{"eth0"});
}

} // namespace
} // namespace affinityd::accounting

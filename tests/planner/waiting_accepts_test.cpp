// SPDX-License-Identifier: Apache-2.0
#include "planner/waiting_accepts.hpp"

#include <gtest/gtest.h>

namespace affinityd::planner {
namespace {

using std::chrono::seconds;
using Counts = WaitingAccepts::Counts;

class Waiting : public testing::Test {
  protected:
    /// One look, and the next one five seconds later.
    bool look(const Counts& counts) {
        waiting_.see(now_, counts);
        now_ += seconds(5);
        return waiting_.one_sided().has_value();
    }
    /// For how many looks it takes at most; -1: it is not one-sided after so many.
    int looks_until(const Counts& counts, int most) {
        for (int i = 0; i < most; ++i)
            if (look(counts)) return i;
        return -1;
    }
    WaitingAccepts waiting_;
    WaitingAccepts::Time now_{seconds(1000)};
};

TEST_F(Waiting, AMinuteOfItIsOneSided) {
    EXPECT_EQ(looks_until({{1, 5}, {2, 0}}, 30), 12);
    EXPECT_DOUBLE_EQ(waiting_.one_sided()->busiest, 0.5);
    EXPECT_EQ(waiting_.one_sided()->workers, 2U);
}

TEST_F(Waiting, WhereTheyWaitForAllOrForNobodyItIsNot) {
    EXPECT_EQ(looks_until({{1, 5}, {2, 1}}, 30), -1);
    EXPECT_EQ(looks_until({{1, 0}, {2, 0}}, 30), -1);
    EXPECT_EQ(looks_until({{1, 5}, {2, 5}, {3, 0}}, 30), -1) << "most are busy";
    EXPECT_EQ(looks_until({}, 30), -1);
}

TEST_F(Waiting, AQueueThatIsMostlyEmptyIsNone) {
    for (int i = 0; i < 60; ++i)
        EXPECT_FALSE(look({{1, i % 2}, {2, 0}})) << i;
}

TEST_F(Waiting, WhoHelpsOnceIsNotIdle) {
    for (int i = 0; i < 60; ++i)
        EXPECT_FALSE(look({{1, 5}, {2, i % 10 == 0 ? 1 : 0}})) << i;
}

TEST_F(Waiting, WhoIsNewOrWasNotReadSaysNothing) {
    for (int i = 0; i < 60; ++i)
        EXPECT_FALSE(look({{1, 5}, {100 + i, 0}})) << i;
    for (int i = 0; i < 60; ++i) {
        Counts counts{{1, 5}, {2, 0}};
        if (i % 5 == 0) counts[2] = std::nullopt;
        EXPECT_FALSE(look(counts)) << i;
    }
}

TEST_F(Waiting, AfterAGapTheMinuteBeginsAnew) {
    EXPECT_EQ(looks_until({{1, 5}, {2, 0}}, 11), -1);
    now_ += seconds(120);
    EXPECT_EQ(looks_until({{1, 5}, {2, 0}}, 11), -1);
    now_ -= seconds(600);
    EXPECT_EQ(looks_until({{1, 5}, {2, 0}}, 11), -1) << "the clock has jumped";
}

} // namespace
} // namespace affinityd::planner

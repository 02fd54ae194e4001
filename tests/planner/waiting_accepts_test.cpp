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
        waiting_.see(now_, counts, accepted_);
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
    Counts accepted_; ///< none is known
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

TEST_F(Waiting, LooksInABurstCountAsOne) {
    for (int i = 0; i < 60; ++i, now_ -= seconds(5) - WaitingAccepts::Time(50))
        EXPECT_FALSE(look({{1, 5}, {2, 0}})) << i;
    EXPECT_EQ(looks_until({{1, 0}, {2, 0}}, 10), -1);
    for (int i = 0; i < 60; ++i, now_ -= seconds(5) - WaitingAccepts::Time(50))
        EXPECT_FALSE(look({{1, 5}, {2, 0}})) << i;
}

TEST_F(Waiting, WhoTakesNoneHangs) {
    accepted_ = {{1, 0}, {2, 0}};
    EXPECT_EQ(looks_until({{1, 5}, {2, 0}}, 30), -1);
    accepted_ = {{1, 3}, {2, 0}};
    EXPECT_GE(looks_until({{1, 5}, {2, 0}}, 30), 0);
}

TEST_F(Waiting, AFewSayNothingOfAll) {
    for (int i = 0; i < 60; ++i) {
        Counts counts{{1, 5}, {2, 0}};
        for (int other = 0; other < 6; ++other)
            counts[static_cast<std::uint64_t>(100 + 10 * i + other)] = 0;
        EXPECT_FALSE(look(counts)) << i;
    }
}

TEST_F(Waiting, AfterAGapTheMinuteBeginsAnew) {
    EXPECT_EQ(looks_until({{1, 5}, {2, 0}}, 11), -1);
    now_ += seconds(120);
    EXPECT_EQ(looks_until({{1, 5}, {2, 0}}, 11), -1);
}

} // namespace
} // namespace affinityd::planner

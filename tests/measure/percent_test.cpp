// SPDX-License-Identifier: Apache-2.0
#include "measure/statistics.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace affinityd::measure {
namespace {

TEST(Percent, HasNoMinusBeforeZero) {
    EXPECT_EQ(percent(0.352, 0), "35");
    EXPECT_EQ(percent(-0.0352, 1), "-3.5");
    EXPECT_EQ(percent(-0.004, 0), "0");
    EXPECT_EQ(percent(-0.0, 1), "0.0");
    EXPECT_EQ(percent(-0.0004, 1), "0.0");
    EXPECT_EQ(percent(-1, 0), "-100");
}

TEST(Percent, WithSign) {
    EXPECT_EQ(signed_percent(0.352, 1), "+35.2");
    EXPECT_EQ(signed_percent(-0.352, 0), "-35");
    EXPECT_EQ(signed_percent(-1e-9, 1), "+0.0");
    EXPECT_EQ(signed_percent(0, 0), "+0");
}

TEST(Percent, OfAnyNumber) {
    EXPECT_EQ(percent(std::numeric_limits<double>::infinity(), 1), "inf");
    EXPECT_EQ(signed_percent(-std::numeric_limits<double>::infinity(), 1), "-inf");
    EXPECT_GT(percent(std::numeric_limits<double>::max() / 100, 1).size(), 300U);
}

} // namespace
} // namespace affinityd::measure

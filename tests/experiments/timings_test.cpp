// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame/timings.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace affinityd::experiments {
namespace {

TEST(Timings, AreMeansOfTimes) {
    const std::vector<double> times{1, 2, 3, 4, 5, 6};
    const auto mean = mean_time(times);
    ASSERT_TRUE(mean);
    EXPECT_NEAR(mean->estimate, 3.5, 1e-9) << "not of rates";
    EXPECT_LT(mean->low, 3.5);
    EXPECT_GT(mean->high, 3.5);
    EXPECT_FALSE(mean_time(std::vector<double>{1, 2, 3}));
    EXPECT_FALSE(mean_time(std::vector<double>{1, 2, 3, 0}));
}

TEST(Timings, CompareByHowMuchLonger) {
    const std::vector<double> base{1.00, 1.01, 0.99, 1.00, 1.02}, slow{1.75, 1.76, 1.74, 1.75, 1.77};
    const auto longer = how_much_longer(base, slow);
    EXPECT_EQ(longer.verdict, measure::Verdict::more);
    EXPECT_NEAR(longer.change.estimate, 8.77 / 5.02 - 1, 1e-9);
    const auto shorter = how_much_longer(slow, base);
    EXPECT_EQ(shorter.verdict, measure::Verdict::less);
    EXPECT_LT(shorter.change.high, 0);
    EXPECT_EQ(how_much_longer(base, base).verdict, measure::Verdict::none_shown);
    EXPECT_EQ(how_much_longer({}, slow).verdict, measure::Verdict::not_enough);
    std::vector<double> one, other;
    for (int i = 0; i < 20; ++i) {
        one.push_back(1 + 0.01 * (i * 7 % 20));
        other.push_back(1.5 + 0.01 * (i * 3 % 20));
    }
    EXPECT_GT(how_much_longer(one, other, 10).change.high, how_much_longer(one, other).change.high)
        << "all of ten hold together";
}

} // namespace
} // namespace affinityd::experiments

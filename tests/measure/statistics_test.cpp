// SPDX-License-Identifier: Apache-2.0
#include "measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace affinityd::measure {
namespace {

using Samples = std::vector<double>;

TEST(HarmonicMean, Values) {
    EXPECT_DOUBLE_EQ(harmonic_mean(Samples{4}).value(), 4);
    EXPECT_DOUBLE_EQ(harmonic_mean(Samples{40, 60}).value(), 48); // there at 40, back at 60
    EXPECT_DOUBLE_EQ(harmonic_mean(Samples{1, 2, 4}).value(), 12.0 / 7);
    EXPECT_FALSE(harmonic_mean(Samples{}));
    EXPECT_FALSE(harmonic_mean(Samples{1, 0}));
    EXPECT_FALSE(harmonic_mean(Samples{1, -1}));
    EXPECT_FALSE(harmonic_mean(Samples{1, INFINITY}));
    EXPECT_FALSE(harmonic_mean(Samples{1, NAN}));
}

TEST(Median, Values) {
    EXPECT_FALSE(median(Samples{}));
    EXPECT_DOUBLE_EQ(median(Samples{3}).value(), 3);
    EXPECT_DOUBLE_EQ(median(Samples{9, 1, 5}).value(), 5);
    EXPECT_DOUBLE_EQ(median(Samples{9, 1, 5, 6}).value(), 5.5);
}

TEST(StudentQuantile, AgreesWithThePrintedTable) {
    EXPECT_NEAR(student_quantile(0.025, 1), 12.706, 0.001);
    EXPECT_NEAR(student_quantile(0.025, 2), 4.303, 0.001);
    EXPECT_NEAR(student_quantile(0.025, 3), 3.182, 0.001);
    EXPECT_NEAR(student_quantile(0.025, 5), 2.571, 0.001);
    EXPECT_NEAR(student_quantile(0.025, 30), 2.042, 0.001);
    EXPECT_NEAR(student_quantile(0.005, 7), 3.499, 0.001);
    EXPECT_NEAR(student_quantile(0.05, 120), 1.658, 0.001);
    EXPECT_NEAR(student_quantile(0.0005, 3), 12.924, 0.001);
    EXPECT_NEAR(student_quantile(0.0005, 2), 31.599, 0.001);
    EXPECT_NEAR(student_quantile(0.0005, 9), 4.781, 0.001);
}

TEST(Compare, ClearGainIsShownWithItsSize) {
    const Samples base{10.0, 10.2, 9.9, 10.1, 10.0, 9.8};
    const Samples more{12.9, 13.1, 12.8, 13.2, 12.9, 12.7};
    const auto result = compare(base, more);
    EXPECT_EQ(result.verdict, Verdict::more);
    EXPECT_NEAR(result.change.estimate, 0.29, 0.01);
    EXPECT_GT(result.change.low, 0.25);
    EXPECT_LT(result.change.high, 0.33);
    EXPECT_EQ(compare(more, base).verdict, Verdict::less);
}

TEST(Compare, NoVerdictWithinTheNoise) {
    const Samples base{10, 14, 9, 12, 11, 8};
    const Samples other{11, 12, 10, 13, 10, 9};
    EXPECT_EQ(compare(base, other).verdict, Verdict::none_shown);
    EXPECT_EQ(compare(base, base).verdict, Verdict::none_shown);
}

TEST(Compare, DriftSharedByTheRoundsCancels) {
    // Half the speed at the end as at the start, but the second is 5 % ahead in each round.
    const Samples base{20, 17, 15, 13, 11, 10};
    Samples other;
    for (std::size_t i = 0; i < base.size(); ++i)
        other.push_back(base[i] * (i % 2 == 0 ? 1.051 : 1.049));
    EXPECT_EQ(compare(base, other).verdict, Verdict::more);
    other.push_back(10.2); // no longer pairs: the drift is noise again
    EXPECT_EQ(compare(base, other).verdict, Verdict::none_shown);
}

TEST(Compare, TooFewOrSpoiledSamplesGiveNoVerdict) {
    const Samples four{10, 11, 10, 11};
    EXPECT_EQ(compare(Samples{1, 1, 1}, Samples{9, 9, 9}).verdict, Verdict::not_enough);
    EXPECT_EQ(compare(Samples{}, Samples{}).verdict, Verdict::not_enough);
    EXPECT_EQ(compare(four, Samples{10, 11, 0, 11}).verdict, Verdict::not_enough);
    EXPECT_EQ(compare(four, Samples{10, 11, NAN, 11}).verdict, Verdict::not_enough);
    EXPECT_EQ(compare(four, four, 0).verdict, Verdict::not_enough);
    EXPECT_NE(compare(four, Samples{20, 21, 20, 21}).verdict, Verdict::not_enough);
}

TEST(Compare, SameInputSameAnswer) {
    const Samples base{10, 14, 9, 12, 11, 8};
    const Samples other{11, 12, 10, 13, 10, 9};
    const auto first = compare(base, other);
    const auto again = compare(base, other);
    EXPECT_EQ(first.change.low, again.change.low);
    EXPECT_EQ(first.change.high, again.change.high);
}

/// Little noise, but one of ten samples took twenty times as long: another program had the CPU.
Samples interrupted(std::mt19937& random, std::size_t count) {
    Samples samples;
    for (std::size_t i = 0; i < count; ++i)
        samples.push_back(
            1 / (std::lognormal_distribution<double>(0, 0.005)(random) + (random() % 10 == 0 ? 20 : 0)));
    return samples;
}

TEST(Compare, AFewSamplesThatAreFarOffAreNoProof) {
    constexpr unsigned comparisons = 48; // all of an experiment like measure cache
    for (const std::size_t rounds : {8, 20, 40}) {
        SCOPED_TRACE(rounds);
        std::mt19937 random(11);
        int claims = 0, of_unequal = 0;
        for (int i = 0; i < 4000; ++i) {
            const auto base = interrupted(random, rounds);
            const auto is_claim = [&](std::size_t others) {
                return compare(base, interrupted(random, others), comparisons).verdict != Verdict::none_shown;
            };
            claims += is_claim(rounds);
            of_unequal += is_claim(rounds + 3);
        }
        EXPECT_LE(claims, 12) << "0.05 / 48 of 4,000, and chance";
        EXPECT_LE(of_unequal, 12);
    }
}

/// Noise of about ten per cent, and some of the kind that a busy machine makes: now and then a sample is far
/// too low.
double noise(std::mt19937& random, bool is_busy) {
    const double usual = std::lognormal_distribution<double>(0, 0.1)(random);
    const bool is_late = is_busy && std::bernoulli_distribution(0.1)(random);
    return is_late ? usual / (1 + std::exponential_distribution<double>(1)(random)) : usual;
}

Samples noises(std::mt19937& random, std::size_t count, bool is_busy = false) {
    Samples samples;
    for (std::size_t i = 0; i < count; ++i)
        samples.push_back(noise(random, is_busy));
    return samples;
}

/// How often, of 2,000 experiments without any difference, one is claimed.
double false_claims(std::size_t rounds, unsigned comparisons, unsigned seed, bool is_busy = false) {
    std::mt19937 random(seed);
    int claims = 0;
    for (int i = 0; i < 2000; ++i) {
        const auto base = noises(random, rounds, is_busy);
        claims += compare(base, noises(random, rounds, is_busy), comparisons).verdict != Verdict::none_shown;
    }
    return claims / 2000.0;
}

TEST(Compare, IntervalCoversAsOftenAsItSays) {
    for (const std::size_t rounds : {4, 6, 8, 12, 30}) {
        SCOPED_TRACE(rounds);
        EXPECT_LE(false_claims(rounds, 1, 1), 0.06);
        EXPECT_LE(false_claims(rounds, 1, 2, true), 0.06);
        EXPECT_GE(false_claims(rounds, 1, 3), 0.03) << "nor is it so wide that it says nothing";
        EXPECT_LE(false_claims(rounds, 10, 4), 0.01) << "0.05 / 10, and chance";
    }
}

TEST(Compare, SidesOfUnequalNumberAreCoveredToo) {
    std::mt19937 random(5);
    int claims = 0;
    for (int i = 0; i < 2000; ++i)
        claims += compare(noises(random, 4), noises(random, 9)).verdict != Verdict::none_shown;
    EXPECT_LE(claims / 2000.0, 0.06);
}

TEST(Compare, FourRoundsThatLieOnOneSideAreNoProof) {
    // As likely as four heads or four tails: one of eight experiments without any difference is so.
    EXPECT_EQ(compare(Samples{10, 10, 10, 10}, Samples{10.1, 10.9, 10.2, 11.6}).verdict, Verdict::none_shown);
    EXPECT_EQ(compare(Samples{10, 10, 10, 10}, Samples{10.9, 11.0, 11.1, 11.0}).verdict, Verdict::more);
}

TEST(MeanInterval, HoldsTheMean) {
    const auto interval = mean_interval(Samples{10, 11, 9, 10, 12, 8});
    ASSERT_TRUE(interval);
    EXPECT_LT(interval->low, interval->estimate);
    EXPECT_GT(interval->high, interval->estimate);
    EXPECT_GT(interval->low, 7.9);
    EXPECT_FALSE(mean_interval(Samples{1, 2, 3}));
}

TEST(MeanInterval, CoversTheTrueMeanAsOftenAsItSays) {
    for (const std::size_t count : {4, 8, 30}) {
        SCOPED_TRACE(count);
        std::mt19937 random(static_cast<unsigned>(count));
        int missed = 0;
        for (int i = 0; i < 2000; ++i) {
            Samples rates, counts;
            for (std::size_t k = 0; k < count; ++k) {
                counts.push_back(std::max(0.0, std::normal_distribution<double>(10, 1)(random)));
                rates.push_back(1 / counts.back());
            }
            const auto rate = mean_interval(rates);
            missed += rate->low > 0.1 || rate->high < 0.1;
            const auto average = average_interval(counts);
            missed += average->low > 10 || average->high < 10;
        }
        EXPECT_LE(missed / 4000.0, 0.06);
        EXPECT_GE(missed / 4000.0, 0.03);
    }
}

TEST(AverageInterval, HoldsTheMeanAlsoOfCountsThatAreZero) {
    const auto interval = average_interval(Samples{0, 3, 1, 2, 0, 6});
    ASSERT_TRUE(interval);
    EXPECT_DOUBLE_EQ(interval->estimate, 2);
    EXPECT_LT(interval->low, 1);
    EXPECT_GE(interval->low, 0);
    EXPECT_GT(interval->high, 3);
    const auto never = average_interval(Samples{0, 0, 0, 0});
    EXPECT_EQ(never->low, 0);
    EXPECT_EQ(never->high, 0);
    EXPECT_FALSE(average_interval(Samples{1, 2, 3}));
    EXPECT_FALSE(average_interval(Samples{1, 2, 3, -1}));
    EXPECT_FALSE(average_interval(Samples{1, 2, 3, std::numeric_limits<double>::infinity()}));
}

TEST(TrendTest, NeedsEightRunsBefore) {
    EXPECT_EQ(trend(Samples{1, 1, 1, 1, 1, 1, 1, 9}).trend, Trend::unknown);
    EXPECT_EQ(trend(Samples{1, 1, 1, 1, 1, 1, 1, 1, 9}).trend, Trend::up);
    EXPECT_EQ(trend(Samples{}).trend, Trend::unknown);
}

TEST(TrendTest, FallBelowTheSpreadIsFound) {
    const Samples before{100, 103, 98, 101, 99, 102, 97, 100, 101, 99};
    Samples values = before;
    values.push_back(80);
    const auto down = trend(values);
    EXPECT_EQ(down.trend, Trend::down);
    EXPECT_NEAR(down.median, 100, 0.01);
    EXPECT_NEAR(down.change, -0.2, 0.001);
    EXPECT_LT(down.low, 97);
    EXPECT_GT(down.low, 85);
    values.back() = 97;
    EXPECT_EQ(trend(values).trend, Trend::steady);
    values.back() = 120;
    EXPECT_EQ(trend(values).trend, Trend::up);
}

TEST(TrendTest, NoisyPastNeedsAGreaterFall) {
    Samples values{100, 140, 60, 120, 80, 110, 90, 130, 70, 100, 60};
    EXPECT_EQ(trend(values).trend, Trend::steady);
}

TEST(TrendTest, AStillPastDoesNotMakeAPercentARegression) {
    Samples values(20, 100.0);
    values.push_back(97);
    EXPECT_EQ(trend(values).trend, Trend::steady);
    values.back() = 94;
    EXPECT_EQ(trend(values).trend, Trend::down);
}

TEST(TrendTest, WindowForgetsTheOldLevel) {
    Samples values(40, 50.0);
    values.insert(values.end(), 30, 100.0);
    values.push_back(100);
    EXPECT_EQ(trend(values, 30).trend, Trend::steady);
}

} // namespace
} // namespace affinityd::measure

// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/stream.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace affinityd::ttcp {
namespace {

TEST(LatencyCounts, NothingHasNoQuantile) {
    const LatencyCounts none;
    EXPECT_FALSE(none.quantile(0.5));
    EXPECT_EQ(none.total(), 0U);
}

TEST(LatencyCounts, OneValueIsEveryQuantileToItsRange) {
    for (const std::uint64_t value :
         {0ULL, 1ULL, 127ULL, 128ULL, 255ULL, 256ULL, 257ULL, 511ULL, 512ULL, 30'000ULL, 1'000'000ULL,
          999'999'999ULL, (1ULL << 39) + 12345, (1ULL << 40) - 1}) {
        LatencyCounts counts;
        counts.add(value);
        for (const double part : {0.0, 0.5, 0.99, 1.0})
            EXPECT_NEAR(counts.quantile(part).value(), static_cast<double>(value),
                        std::max(1.0, static_cast<double>(value) / 128))
                << value << " " << part;
    }
}

TEST(LatencyCounts, WhatIsTooLongCountsAsTheLongest) {
    LatencyCounts counts;
    counts.add(~0ULL);
    EXPECT_NEAR(counts.quantile(0.5).value(), std::ldexp(1.0, 40), std::ldexp(1.0, 33));
}

TEST(LatencyCounts, QuantilesAreThoseOfTheSortedValues) {
    std::mt19937_64 random(7);
    std::lognormal_distribution<double> latency(std::log(40'000), 0.8);
    std::vector<double> values;
    LatencyCounts first, second;
    for (int i = 0; i < 20'000; ++i) {
        const auto value = static_cast<std::uint64_t>(latency(random));
        values.push_back(static_cast<double>(value));
        (i % 3 == 0 ? first : second).add(value);
    }
    std::ranges::sort(values);
    first += second;
    EXPECT_EQ(first.total(), values.size());
    for (const double part : {0.01, 0.5, 0.9, 0.99, 0.999}) {
        const double exact = values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
        EXPECT_NEAR(first.quantile(part).value(), exact, exact * 0.01) << part;
    }
}

} // namespace
} // namespace affinityd::ttcp

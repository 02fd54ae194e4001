// SPDX-License-Identifier: Apache-2.0
#include "locality/samples.hpp"

#include <gtest/gtest.h>

namespace affinityd::locality {
namespace {

TEST(Samples, EqualPairsAreCountedTogether) {
    Samples samples;
    samples.add({.pid = 1, .napi = 7, .arrival = 2, .reader = 3});
    samples.add({.pid = 1, .napi = 7, .arrival = 2, .reader = 3}, 4);
    samples.add({.pid = 1, .napi = 7, .arrival = {}, .reader = 3});
    EXPECT_EQ(samples.count(), 6U);
    const auto counts = samples.counts({{1, "web"}});
    ASSERT_EQ(counts.counts.size(), 2U);
    EXPECT_FALSE(counts.counts[0].arrival);
    EXPECT_EQ(counts.counts[0].reads, 1U);
    EXPECT_EQ(counts.counts[1].arrival, 2U);
    EXPECT_EQ(counts.counts[1].reads, 5U);
    EXPECT_EQ(counts.counts[1].napi, 7U);
    EXPECT_EQ(counts.counts[1].reader, 3U);
    EXPECT_EQ(counts.names.at(1), "web");
}

TEST(Samples, FadingKeepsTheShares) {
    Samples samples;
    samples.add({.pid = 1, .arrival = 0, .reader = 0}, 3000);
    samples.add({.pid = 1, .arrival = 0, .reader = 1}, 1000);
    samples.add({.pid = 1, .arrival = 0, .reader = 2}, 1);
    samples.fade(2000);
    EXPECT_EQ(samples.count(), 2000U);
    const auto counts = samples.counts({});
    ASSERT_EQ(counts.counts.size(), 2U) << "half a sample is none";
    EXPECT_EQ(counts.counts[0].reads, 1500U);
    samples.fade(0);
    EXPECT_EQ(samples.count(), 0U);
    EXPECT_TRUE(samples.counts({}).counts.empty());
}

TEST(Samples, WhatIsForgottenCountsNoMore) {
    Samples samples;
    samples.add({.pid = 1, .arrival = 0, .reader = 0}, 5);
    samples.add({.pid = 2, .arrival = 0, .reader = 0}, 7);
    samples.forget([](int pid) { return pid == 1; });
    EXPECT_EQ(samples.count(), 7U);
    ASSERT_EQ(samples.counts({}).counts.size(), 1U);
    EXPECT_EQ(samples.counts({}).counts[0].pid, 2);
}

} // namespace
} // namespace affinityd::locality

// SPDX-License-Identifier: Apache-2.0
#include "accounting/past_costs.hpp"

#include <gtest/gtest.h>

namespace affinityd::accounting {
namespace {

state::MeasurementRecord part(std::int64_t time, std::uint64_t text_hash, std::uint64_t bytes) {
    state::MeasurementRecord record;
    record.time = time;
    record.policies = "web";
    record.model = "full";
    record.bytes = bytes;
    record.cpu_seconds = 2;
    record.detail = cost_detail(text_hash);
    return record;
}

TEST(PastCosts, DetailIsWhatTheHistoryHasAlwaysHeld) {
    EXPECT_EQ(cost_detail(18446744073709551615ULL), "{\"text_hash\":18446744073709551615}");
}

TEST(PastCosts, InterfacesOfOnePeriodAreAddedUp) {
    PastCosts costs;
    costs.recall({part(5, 1, 100), part(5, 1, 200), part(9, 2, 400)});
    const auto* before = costs.before("web", 2);
    ASSERT_NE(before, nullptr);
    EXPECT_EQ(before->bytes, 300);
    EXPECT_EQ(before->cpu_seconds, 4);
    EXPECT_EQ(before->ended_at, 5);
    EXPECT_EQ(costs.before("web", 7)->bytes, 400) << "the last under another text";
    EXPECT_EQ(costs.before("db", 7), nullptr);
}

TEST(PastCosts, RecordsOfOtherMakeAreNotRecalled) {
    PastCosts costs;
    for (const char* detail :
         {"", "{", "[]", "{}", "{\"text_hash\":-1}", "{\"text_hash\":\"7\"}", "{\"text_hash\":1.5}",
          "{\"text_hash\":}", "{\"text_hash\":1}}", "{\"text_hash\":99999999999999999999}"}) {
        auto record = part(5, 1, 100);
        record.detail = detail;
        costs.recall({record});
    }
    EXPECT_EQ(costs.before("web", 2), nullptr);
}

TEST(PastCosts, PoliciesAndPeriodsAreBounded) {
    PastCosts costs;
    for (std::uint64_t i = 0; i < 20; ++i)
        costs.remember("web", {.ended_at = 1, .text_hash = i, .bytes = 0, .cpu_seconds = 0, .model = ""});
    EXPECT_EQ(costs.before("web", 19)->text_hash, 18U);
    for (int i = 0; i < 10'000; ++i)
        costs.remember("p" + std::to_string(i),
                       {.ended_at = 1, .text_hash = 1, .bytes = 0, .cpu_seconds = 0, .model = ""});
    EXPECT_NE(costs.before("p1", 2), nullptr);
    EXPECT_EQ(costs.before("p9999", 2), nullptr);
}

} // namespace
} // namespace affinityd::accounting

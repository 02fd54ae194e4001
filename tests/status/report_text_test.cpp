// SPDX-License-Identifier: Apache-2.0
// The JSON of costs and measurements, byte for byte: programs of other people read it.
#include "status/json.hpp"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace affinityd::status {
namespace {

using nlohmann::json;

TEST(ReportText, CostsOfAPolicyAreGivenPerGigabyteWhereThereIsTraffic) {
    accounting::PolicyCost cost;
    cost.policy = "web";
    cost.model = "full";
    cost.seconds = 2.5;
    cost.nics = {{"eth0", 2e9, true}};
    cost.bytes = 2e9;
    cost.cpu_seconds = 6;
    EXPECT_EQ(
        to_text(accounting::CostReport{cost}),
        R"([{"before":null,"bytes":2000000000.0,"cpu_seconds":6.0,"cpu_seconds_per_gb":3.0,"model":"full",)"
        R"("nics":[{"bytes":2000000000.0,"nic":"eth0","shared":true}],"policy":"web","seconds":2.5}])");
    cost.bytes = 10;
    cost.before = accounting::PastCost{
        .ended_at = 1001, .text_hash = 7, .bytes = 1e9, .cpu_seconds = 3, .model = "none"};
    EXPECT_EQ(
        json::parse(to_text(accounting::CostReport{cost}))[0]["before"].dump(),
        R"({"bytes":1000000000.0,"cpu_seconds":3.0,"cpu_seconds_per_gb":3.0,"ended_at":1001,"model":"none"})");
    EXPECT_TRUE(json::parse(to_text(accounting::CostReport{cost}))[0]["cpu_seconds_per_gb"].is_null());
    EXPECT_EQ(to_text(accounting::CostReport{}), "[]");
}

TEST(ReportText, TheLastMeasurementIsNullBeforeTheFirstRun) {
    EXPECT_EQ(to_text(std::optional<accounting::MeasurementReport>()), "null");
    accounting::MeasurementReport report;
    report.last.id = 3;
    report.last.time = 1000;
    report.last.kind = "ttcp";
    report.last.outcome = "done";
    report.last.path = "loopback";
    report.last.model = "none";
    report.last.bytes = 5;
    report.last.ghz_per_gbps = 1.5;
    report.summary = "fine";
    report.runs = 1;
    EXPECT_EQ(
        to_text(std::optional(report)),
        R"({"last":{"bits_per_second":0.0,"bytes":5,"cpu_seconds":0.0,"ghz_per_gbps":1.5,"id":3,"kind":"ttcp",)"
        R"("model":"none","outcome":"done","path":"loopback","policies":"","seconds":0.0,"time":1000,)"
        R"("touches_nic_interrupts":false},"runs":1,"summary":"fine",)"
        R"("trend":{"change":0.0,"direction":"unknown","high":0.0,"low":0.0,"median":0.0}})");
}

TEST(ReportText, AHistoryHasKeysOfTheKindsThatItHolds) {
    accounting::HistoryReport report;
    EXPECT_EQ(to_text(report), R"({"kept":false,"records":[],"trends":[]})");
    report.records.emplace_back().reason = "busy";
    report.trends.push_back({"ttcp", "loopback", {}});
    report.fault = "broken";
    const auto value = json::parse(to_text(report));
    EXPECT_EQ(value["records"][0]["reason"], "busy");
    EXPECT_FALSE(value["records"][0].contains("touches_nic_interrupts")) << "only of ttcp runs";
    EXPECT_EQ(value["trends"][0]["kind"], "ttcp");
    EXPECT_EQ(value["trends"][0]["direction"], "unknown");
    EXPECT_EQ(value["fault"], "broken");
}

} // namespace
} // namespace affinityd::status

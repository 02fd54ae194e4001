// SPDX-License-Identifier: Apache-2.0
#include "accounting/measurements.hpp"
#include "measure/result.hpp"
#include "support/tree.hpp"

#include <gtest/gtest.h>

namespace affinityd::accounting {
namespace {

class MeasurementReports : public testing::Test {
  protected:
    static std::string report(double rate, const std::string& path = "loopback") {
        measure::Report value;
        value.outcome = measure::Outcome::done;
        value.setup.path = path;
        value.setup.touches_nic_interrupts = path != "loopback";
        value.setup.streams = 1;
        value.setup.buffer_bytes = 8192;
        value.seconds = 2;
        value.bytes = static_cast<std::uint64_t>(rate / 4);
        value.bits_per_second = rate;
        value.transmitter =
            measure::EndReport{.bytes = value.bytes, .calls = 1, .user_seconds = 0.5, .system_seconds = 1};
        value.receiver = measure::EndReport{
            .bytes = value.bytes, .calls = 1, .user_seconds = 0.25, .system_seconds = 0.25};
        return measure::to_json(value);
    }
    static policy::PolicySet policies(std::initializer_list<policy::Model> models) {
        policy::PolicySet set;
        for (const auto model : models) {
            set.policies.emplace_back();
            set.policies.back().name = "p" + std::to_string(set.policies.size());
            set.policies.back().model = model;
        }
        return set;
    }
    affinityd::test::Tree tree_;
};

TEST_F(MeasurementReports, NoneBeforeTheFirstRun) { EXPECT_FALSE(Measurements("").report()); }

TEST_F(MeasurementReports, WhatWasMeasuredIsToldWithItsModel) {
    Measurements measurements("");
    measurements.add({report(8e9), measure::Outcome::done, ""},
                     policies({policy::Model::full, policy::Model::full}));
    auto value = *measurements.report();
    EXPECT_EQ(value.runs, 1U);
    EXPECT_EQ(value.last.outcome, "done");
    EXPECT_EQ(value.last.bits_per_second, 8e9);
    EXPECT_EQ(value.last.cpu_seconds, 2.0);
    EXPECT_EQ(value.last.model, "full");
    EXPECT_EQ(value.last.policies, "p1,p2");
    EXPECT_EQ(touches_nic_interrupts(value.last), false);
    EXPECT_NE(value.summary.find("which tests no NIC"), std::string::npos);
    EXPECT_NE(value.summary.find("8.00 Gbit/s"), std::string::npos);
    measurements.add({report(8e9, "192.0.2.1:5001"), measure::Outcome::done, ""},
                     policies({policy::Model::full, policy::Model::irq}));
    value = *measurements.report();
    EXPECT_EQ(value.last.model, "mixed");
    EXPECT_EQ(touches_nic_interrupts(value.last), true);
    EXPECT_EQ(value.summary.find("loopback"), std::string::npos);
    measurements.add({report(8e9), measure::Outcome::done, ""}, policies({}));
    EXPECT_EQ(measurements.report()->last.model, "none");
}

TEST_F(MeasurementReports, ARunWithoutAFigureIsRecordedToo) {
    Measurements measurements("");
    measurements.add({"", measure::Outcome::failed, "took too long and was ended"}, {});
    auto value = *measurements.report();
    EXPECT_EQ(value.last.outcome, "failed");
    EXPECT_EQ(value.last.reason, "took too long and was ended");
    measurements.add({"{\"rate\": 1e999}", measure::Outcome::done, ""}, {});
    value = *measurements.report();
    EXPECT_EQ(value.last.outcome, "failed");
    EXPECT_NE(value.last.reason.find("cannot be read"), std::string::npos);
    EXPECT_EQ(value.runs, 2U);
}

TEST_F(MeasurementReports, ResultsSurviveARestart) {
    {
        Measurements measurements(tree_.path());
        measurements.add({report(4e9), measure::Outcome::done, ""}, {});
    }
    const Measurements again(tree_.path());
    EXPECT_EQ(again.report()->last.bits_per_second, 4e9);
}

TEST_F(MeasurementReports, AHistoryThatCannotBeUsedIsSetAside) {
    tree_.file("history.db", std::string(4096, 'x'));
    Measurements measurements(tree_.path());
    measurements.add({report(4e9), measure::Outcome::done, ""}, {});
    EXPECT_EQ(measurements.report()->runs, 1U);
    EXPECT_EQ(measurements.take_notices().front().kind, Notice::Kind::history_set_aside);
}

TEST_F(MeasurementReports, WithoutAPlaceItGoesOnInMemory) {
    tree_.file("in-the-way", "a file");
    Measurements measurements(tree_.path("in-the-way/state"));
    measurements.add({report(4e9), measure::Outcome::done, ""}, {});
    EXPECT_EQ(measurements.take_notices().front().kind, Notice::Kind::not_kept);
    EXPECT_EQ(measurements.report()->runs, 1U);
}

TEST_F(MeasurementReports, MemoryIsBoundedAndTheTrendComparesLikeWithLike) {
    Measurements measurements("");
    for (int i = 0; i < 100; ++i)
        measurements.add({report(i % 2 == 0 ? 8e9 : 1e9, i % 2 == 0 ? "loopback" : "192.0.2.1:5001"),
                          measure::Outcome::done, ""},
                         {});
    measurements.add({report(8e9), measure::Outcome::done, ""}, {});
    const auto value = *measurements.report();
    EXPECT_LE(value.runs, 64U);
    EXPECT_EQ(value.trend.median, 8e9) << "the other way is another figure";
}

} // namespace
} // namespace affinityd::accounting

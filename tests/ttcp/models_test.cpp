// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/report.hpp"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace affinityd::ttcp {
namespace {

using measure::Outcome;
using measure::Verdict;

ModelResult result(Model model, const std::vector<double>& rates, double cost) {
    ModelResult value{model, {}};
    for (std::size_t i = 0; i < rates.size(); ++i) {
        ModelSample sample;
        sample.bits_per_second = rates[i];
        sample.bytes = 1000;
        sample.cpu_seconds = {0.375, 0.125, {}};
        sample.wall_seconds = 2;
        sample.cycles_per_bit =
            CostParts{0.75, 0.25, {}}.times(cost * (1 + 0.001 * static_cast<double>(i % 3)));
        sample.processes = {20, 4, {}};
        sample.kernel.interrupts = i;
        sample.cpus = {{0, 1, 1, 0, 0, 5}};
        sample.lines = {{24, "eth0-rx-0", 0, 7}};
        value.samples.push_back(sample);
    }
    return value;
}

TEST(Models, EveryNameIsParsedBack) {
    for (const Model model : all_models)
        EXPECT_EQ(parse_model(to_string(model)), model);
    EXPECT_FALSE(parse_model("Full"));
    EXPECT_TRUE(binds_interrupts(Model::full) && binds_processes(Model::full));
    EXPECT_TRUE(binds_interrupts(Model::irq) && !binds_processes(Model::irq));
    EXPECT_TRUE(!binds_interrupts(Model::process) && binds_processes(Model::process));
}

TEST(Models, AdjacentConnectionsShareACpu) {
    const CpuSet two{0, 1};
    for (unsigned i = 0; i < 8; ++i)
        EXPECT_EQ(cpu_of(i, 8, two), i / 4);
    const CpuSet many{2, 5, 9, 11};
    EXPECT_EQ(cpu_of(0, 2, many), 2U);
    EXPECT_EQ(cpu_of(1, 2, many), 9U);
    EXPECT_EQ(cpu_of(7, 8, many), 11U);
}

TEST(Models, OrderAlternatesSoThatDriftCancels) {
    EXPECT_EQ(interleave(4, 2), (std::vector<std::size_t>{0, 1, 2, 3, 3, 2, 1, 0}));
    // A steady drift: every model has the same mean position over an even number of rounds.
    const auto order = interleave(3, 6);
    std::vector<double> sums(3);
    for (std::size_t i = 0; i < order.size(); ++i)
        sums[order[i]] += static_cast<double>(i);
    EXPECT_EQ(sums[0], sums[1]);
    EXPECT_EQ(sums[1], sums[2]);
}

TEST(Models, GainIsClaimedOnlyWhereItShows) {
    const std::vector<double> base{100, 102, 98, 101, 99, 100};
    const std::vector<double> same{101, 99, 100, 98, 102, 100};
    const std::vector<double> more{130, 131, 129, 132, 128, 130};
    const auto summaries =
        summarize({result(Model::none, base, 2), result(Model::irq, same, 2), result(Model::full, more, 1)});
    ASSERT_EQ(summaries.size(), 3U);
    EXPECT_EQ(summaries[0].gain.verdict, Verdict::not_enough); // nothing to compare it with
    EXPECT_EQ(summaries[1].gain.verdict, Verdict::none_shown);
    EXPECT_EQ(describe(summaries[1].gain).find("no difference shown"), 0U);
    EXPECT_EQ(summaries[2].gain.verdict, Verdict::more);
    EXPECT_NEAR(summaries[2].gain.change.estimate, 0.3, 0.001);
    EXPECT_EQ(describe(summaries[2].gain).find("+30.0 %"), 0U) << describe(summaries[2].gain);
    EXPECT_EQ(summaries[1].cost.change.verdict, Verdict::none_shown);
    EXPECT_EQ(summaries[2].cost.change.verdict, Verdict::less); // half the cycles: cheaper
    EXPECT_NEAR(summaries[2].cost.change.change.estimate, -0.5, 0.001);
    EXPECT_LE(summaries[2].cost.change.change.low, summaries[2].cost.change.change.high);
    EXPECT_EQ(summaries[0].busy_cpus, 0.25);
    EXPECT_EQ(summaries[0].per_second.switches.mean, 10.0);
    EXPECT_EQ(summaries[0].per_second.migrations.mean, 2.0);
    EXPECT_EQ(summaries[0].per_second.migrations.interval->low, 2.0);
    EXPECT_DOUBLE_EQ(summaries[0].per_second.interrupts.mean.value(), 1.25); // 0 to 5 in rounds of 2 s
    EXPECT_LT(summaries[0].per_second.interrupts.interval->low, 1.25);
    EXPECT_FALSE(summaries[0].per_second.ipis.interval);
    EXPECT_FALSE(summaries[0].per_second.retransmits.mean); // unknown is not zero
    EXPECT_FALSE(summaries[0].per_bit.cache_misses.mean);
    ASSERT_EQ(summaries[0].cpus.size(), 1U);
    EXPECT_EQ(summaries[0].cpus[0].interrupts, 30U);
    EXPECT_EQ(summaries[0].lines[0].count, 42U);
}

TEST(Models, FewRoundsGiveNoVerdict) {
    const auto summaries = summarize({result(Model::none, {1, 1, 1}, 1), result(Model::full, {9, 9, 9}, 1)});
    EXPECT_EQ(describe(summaries[1].gain), "too few samples");
    EXPECT_FALSE(summaries[1].bits_per_second);
}

TEST(Models, WhatWasNeverMeasuredIsNotZero) {
    ModelsReport report;
    report.points = {{{Work::receive, 65536, 0}, {{Model::none, {}}, {Model::full, {}}}}};
    EXPECT_FALSE(has_rounds(report));
    EXPECT_FALSE(summarize(report.points[0].models)[0].busy_cpus);
    const auto text = to_json(report);
    EXPECT_NE(text.find(R"("busy_cpus":null)"), std::string::npos) << text;
    EXPECT_NE(text.find(R"("context_switches_per_second":null)"), std::string::npos) << text;
    report.points[0].models[1] = result(Model::full, {1}, 1);
    EXPECT_TRUE(has_rounds(report));
}

TEST(Models, CountersPerBit) {
    auto counted = result(Model::none, {1, 1}, 1);
    for (auto& sample : counted.samples) {
        sample.hardware = {16000, 800};
    }
    EXPECT_EQ(summarize({counted, counted})[0].per_bit.cache_misses.mean, 0.1);
    EXPECT_EQ(summarize({counted, counted})[0].per_bit.instructions, 2.0);
    counted.samples[1].hardware.cache_misses.reset();
    EXPECT_FALSE(summarize({counted, counted})[0].per_bit.cache_misses.mean);
}

TEST(Models, ReportAsJson) {
    ModelsReport report;
    report.outcome = Outcome::killed;
    report.reason = "stopped \"by\" a signal";
    const std::vector<ModelResult> models{result(Model::none, {1, 2, 3, 4}, 1),
                                          result(Model::none, {1, 2, 3, 4}, 1)};
    report.points = {{{Work::transmit, 128, 0}, models},
                     {{Work::transmit, 4096, 0}, models},
                     {{Work::answer, 65536, 1}, models}};
    const auto text = to_json(report);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    const auto value = nlohmann::json::parse(text);
    EXPECT_EQ(value["kind"], "models");
    EXPECT_EQ(value["outcome"], "killed");
    EXPECT_EQ(value["models"].size(), 2U);
    EXPECT_EQ(value["models"][1]["gain"]["verdict"], "no difference shown");
    EXPECT_EQ(value["models"][1]["samples"].size(), 4U);
    EXPECT_TRUE(value["models"][0]["samples"][0]["retransmits"].is_null());
    EXPECT_EQ(value["direction"], "transmit"); // the largest size of what comes first
    EXPECT_EQ(value["bytes"], 4096);
    ASSERT_EQ(value["points"].size(), 3U);
    EXPECT_EQ(value["points"][1]["models"], value["models"]);
    EXPECT_EQ(value["points"][2]["response_bytes"], 1);
    EXPECT_TRUE(value["points"][0]["response_bytes"].is_null());
}

TEST(Models, ReportOfNothingIsStillJson) {
    const auto value = nlohmann::json::parse(to_json({}));
    EXPECT_TRUE(value["models"].empty());
    EXPECT_TRUE(value["points"].empty());
}

TEST(Models, PartsOfTheCostAddUp) {
    const auto cost = summarize({result(Model::none, {1, 2, 3, 4}, 2)})[0].cost;
    EXPECT_NEAR(cost.cycles_per_bit.processes->estimate + cost.cycles_per_bit.softirq->estimate,
                cost.cycles_per_bit.total->estimate, 1e-9);
    EXPECT_FALSE(cost.cycles_per_bit.interrupts);
    EXPECT_NEAR(cost.cpu_seconds.total->estimate, 0.5 / 8e-6, 1e-3); // of a gigabit; 8000 bits were moved
}

TEST(Models, CostIsOfCpuTimeWhereCyclesAreNotKnown) {
    auto base = result(Model::none, {1, 1.1, 0.9, 1}, 1), cheap = base;
    for (auto* each : {&base, &cheap})
        for (auto& sample : each->samples)
            sample.cycles_per_bit.reset();
    for (auto& sample : cheap.samples)
        sample.cpu_seconds = sample.cpu_seconds.times(0.5);
    const auto change = summarize({base, cheap})[1].cost.change;
    EXPECT_EQ(change.verdict, Verdict::less);
    EXPECT_NEAR(change.change.estimate, -0.5, 1e-9);
}

TEST(Models, ExchangesHaveTheirOwnFigures) {
    auto base = result(Model::none, {1, 1, 1, 1, 1, 1}, 1), fast = base;
    for (std::size_t i = 0; i < base.samples.size(); ++i) {
        const double jitter = 1 + 0.01 * static_cast<double>(i);
        base.samples[i].exchanges = ExchangeSample{1000, 40e-6 * jitter, 200e-6};
        fast.samples[i].exchanges = ExchangeSample{2000, 20e-6 * jitter, 200e-6};
    }
    const auto summaries = summarize({base, fast});
    const auto& exchanges = summaries[1].exchanges.value();
    EXPECT_NEAR(exchanges.per_second->estimate, 1000, 1e-6); // in 2 s
    EXPECT_NEAR(exchanges.p50->estimate, 20.5e-6, 1e-9);
    EXPECT_EQ(exchanges.p50_change.verdict, Verdict::less);
    EXPECT_NEAR(exchanges.p50_change.change.estimate, -0.5, 1e-9);
    EXPECT_EQ(exchanges.p99_change.verdict, Verdict::none_shown);
    EXPECT_NEAR(summaries[1].cost.cpu_seconds.total->estimate, 0.25e-3, 1e-9); // of an exchange
    EXPECT_FALSE(summarize({result(Model::none, {1, 1, 1, 1}, 1)})[0].exchanges);
}

} // namespace
} // namespace affinityd::ttcp

// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/report.hpp"

#include <gtest/gtest.h>

namespace affinityd::ttcp {
namespace {

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
    const auto gain = [&](std::size_t model) { return summaries[model][Figure::bits_per_second].change; };
    EXPECT_EQ(gain(0).verdict, Verdict::not_enough); // nothing to compare it with
    EXPECT_EQ(gain(1).verdict, Verdict::none_shown);
    EXPECT_EQ(gain(2).verdict, Verdict::more);
    EXPECT_NEAR(gain(2).change.estimate, 0.3, 0.001);
    EXPECT_EQ(summaries[2].cost(), Figure::cycles);
    EXPECT_EQ(summaries[1][Figure::cycles].change.verdict, Verdict::none_shown);
    const auto& cost = summaries[2][Figure::cycles].change;
    EXPECT_EQ(cost.verdict, Verdict::less); // half the cycles: cheaper
    EXPECT_NEAR(cost.change.estimate, -0.5, 0.001);
    EXPECT_LE(cost.change.low, cost.change.high);
    const auto& first = summaries[0];
    EXPECT_EQ(first[Figure::busy_cpus].mean, 0.25);
    EXPECT_EQ(first[Figure::switches].mean, 10.0);
    EXPECT_EQ(first[Figure::migrations].mean, 2.0);
    EXPECT_EQ(first[Figure::migrations].interval->low, 2.0);
    EXPECT_DOUBLE_EQ(first[Figure::interrupts].mean.value(), 1.25); // 0 to 5 in rounds of 2 s
    EXPECT_LT(first[Figure::interrupts].interval->low, 1.25);
    EXPECT_FALSE(first[Figure::ipis].interval);
    EXPECT_FALSE(first[Figure::retransmits].mean); // unknown is not zero
    EXPECT_FALSE(first[Figure::cache_misses].mean);
    ASSERT_EQ(summaries[0].cpus.size(), 1U);
    EXPECT_EQ(summaries[0].cpus[0].interrupts, 30U);
    EXPECT_EQ(summaries[0].lines[0].count, 42U);
}

TEST(Models, FewRoundsGiveNoVerdict) {
    const auto summaries = summarize({result(Model::none, {1, 1, 1}, 1), result(Model::full, {9, 9, 9}, 1)});
    EXPECT_EQ(summaries[1][Figure::bits_per_second].change.verdict, Verdict::not_enough);
    EXPECT_FALSE(summaries[1][Figure::bits_per_second].interval);
}

TEST(Models, WhatWasNeverMeasuredIsNotZero) {
    ModelsReport report;
    report.points = {{{Work::receive, 65536, 0}, {{Model::none, {}}, {Model::full, {}}}}};
    EXPECT_FALSE(has_rounds(report));
    const auto none = summarize(report.points[0].models)[0];
    EXPECT_FALSE(none[Figure::busy_cpus].mean);
    EXPECT_FALSE(none[Figure::switches].mean);
    report.points[0].models[1] = result(Model::full, {1}, 1);
    EXPECT_TRUE(has_rounds(report));
}

TEST(Models, CountersPerBit) {
    auto counted = result(Model::none, {1, 1}, 1);
    for (auto& sample : counted.samples) {
        sample.hardware = {16000, 800};
    }
    EXPECT_EQ(summarize({counted, counted})[0][Figure::cache_misses].mean, 0.1);
    EXPECT_EQ(summarize({counted, counted})[0][Figure::instructions].mean, 2.0);
    counted.samples[1].hardware.cache_misses.reset();
    EXPECT_FALSE(summarize({counted, counted})[0][Figure::cache_misses].mean);
}

TEST(Models, TheMainPointIsTheLargestOfItsFirstWork) {
    ModelsReport report;
    EXPECT_EQ(main_point(report), nullptr);
    report.points = {
        {{Work::transmit, 128, 0}, {}}, {{Work::transmit, 4096, 0}, {}}, {{Work::answer, 65536, 1}, {}}};
    EXPECT_EQ(main_point(report), &report.points[1]);
}

TEST(Models, PartsOfTheCostAddUp) {
    const auto summary = summarize({result(Model::none, {1, 2, 3, 4}, 2)})[0];
    EXPECT_NEAR(*summary[Figure::cycles_processes].mean + *summary[Figure::cycles_softirq].mean,
                *summary[Figure::cycles].mean, 1e-9);
    EXPECT_FALSE(summary[Figure::cycles_interrupts].mean);
    EXPECT_NEAR(*summary[Figure::cpu].mean, 0.5 / 8e-6, 1e-3); // of a gigabit; 8000 bits were moved
}

TEST(Models, CostIsOfCpuTimeWhereCyclesAreNotKnown) {
    auto base = result(Model::none, {1, 1.1, 0.9, 1}, 1), cheap = base;
    for (auto* each : {&base, &cheap})
        for (auto& sample : each->samples)
            sample.cycles_per_bit.reset();
    for (auto& sample : cheap.samples)
        sample.cpu_seconds = sample.cpu_seconds.times(0.5);
    const auto summary = summarize({base, cheap})[1];
    EXPECT_EQ(summary.cost(), Figure::cpu);
    const auto change = summary[Figure::cpu].change;
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
    const auto& summary = summaries[1];
    EXPECT_NEAR(*summary[Figure::exchanges_per_second].mean, 1000, 1e-6); // in 2 s
    EXPECT_NEAR(*summary[Figure::p50].mean, 20.5e-6, 1e-9);
    EXPECT_EQ(summary[Figure::p50].change.verdict, Verdict::less);
    EXPECT_NEAR(summary[Figure::p50].change.change.estimate, -0.5, 1e-9);
    EXPECT_EQ(summary[Figure::p99].change.verdict, Verdict::none_shown);
    EXPECT_NEAR(*summary[Figure::cpu].mean, 0.25e-3, 1e-9); // of an exchange
    EXPECT_FALSE(summarize({result(Model::none, {1, 1, 1, 1}, 1)})[0][Figure::p50].mean);
}

} // namespace
} // namespace affinityd::ttcp

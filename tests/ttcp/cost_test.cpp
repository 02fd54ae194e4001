// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/round.hpp"
#include "affinity-ttcp/models/sample.hpp"
#include "measure/result.hpp"

#include <gtest/gtest.h>

namespace affinityd::ttcp {
namespace {

/// Before: nothing. After: 3 s of softirqs and that many of interrupts, on two CPUs.
RoundCosts costs_of(const char* irq_ticks) {
    RoundCosts costs;
    costs.first.cpus = parse_cpu_times("cpu0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0\n", 100);
    const auto text = std::string("cpu0 0 0 0 0 0 ") + irq_ticks + " 100\ncpu1 0 0 0 0 0 0 200\n";
    costs.last.cpus = parse_cpu_times(text, 100);
    costs.threads_seconds = 0.25;
    return costs;
}

Testbed testbed_with(std::vector<int> threads) {
    Testbed testbed;
    testbed.paths.push_back({"nic", 0, 1, "", "", std::move(threads), {}});
    return testbed;
}

measure::EndReport end_report() {
    measure::EndReport end;
    end.user_seconds = 0.5;
    end.system_seconds = 1.5;
    return end;
}

TEST(Cost, SoftirqIsTheNapiThreadsWhereThereAreAny) {
    const auto cost = cost_of(testbed_with({7}), end_report(), costs_of("50"));
    EXPECT_DOUBLE_EQ(cost.cpu_seconds.processes, 2);
    EXPECT_DOUBLE_EQ(cost.cpu_seconds.softirq, 0.25);
    EXPECT_FALSE(cost.cpu_seconds.interrupts); // veth pairs raise none
    EXPECT_DOUBLE_EQ(cost.cpu_seconds.total(), 2.25);
    EXPECT_NE(cost.parts_note.find("in neither"), std::string::npos);
}

TEST(Cost, InterruptsAreOfTheWholeMachineWhereTheyAreTold) {
    const auto cost = cost_of(testbed_with({}), end_report(), costs_of("50"));
    EXPECT_DOUBLE_EQ(cost.cpu_seconds.softirq, 3);
    EXPECT_DOUBLE_EQ(cost.cpu_seconds.interrupts.value(), 0.5);
    EXPECT_DOUBLE_EQ(cost.cpu_seconds.total(), 5.5);
    EXPECT_EQ(cost.parts_note.find("IRQ time accounting"), std::string::npos);
}

TEST(Cost, KernelWithoutAccountingSaysWhatIsNotToldApart) {
    for (const auto& threads : {std::vector<int>{}, std::vector<int>{7}}) {
        const auto cost = cost_of(testbed_with(threads), end_report(), costs_of("0"));
        EXPECT_FALSE(cost.cpu_seconds.interrupts);
        EXPECT_NE(cost.parts_note.find("no IRQ time accounting"), std::string::npos) << cost.parts_note;
    }
}

TEST(Cost, CyclesAreCountedElseWorkedOutElseUnknown) {
    auto costs = costs_of("0");
    auto cost = cost_of(testbed_with({7}), end_report(), costs);
    EXPECT_FALSE(cost.cycles);
    EXPECT_EQ(cost.cycles_source, no_cost);
    costs.hz = 2e9;
    cost = cost_of(testbed_with({7}), end_report(), costs);
    EXPECT_DOUBLE_EQ(cost.cycles->processes, 4e9);
    EXPECT_DOUBLE_EQ(cost.cycles->softirq, 0.5e9);
    auto counted = end_report();
    counted.cycles = 100;
    costs.threads_cycles = 20;
    cost = cost_of(testbed_with({7}), counted, costs);
    EXPECT_DOUBLE_EQ(cost.cycles->total(), 120);
    EXPECT_NE(cost.cycles_source.find("hardware counters"), std::string::npos);
    // Counters of processes alone leave out the interrupt work.
    cost = cost_of(testbed_with({}), counted, costs);
    EXPECT_DOUBLE_EQ(cost.cycles->total(), 2e9 * 5);
}

TEST(PricedSample, TheEndUnderTestIsThatOfTheWork) {
    RoundEnds both;
    StreamUse sent, taken;
    sent.bytes = taken.bytes = 1000;
    sent.started = taken.started = 1;
    sent.ended = taken.ended = 2;
    sent.usage.user_seconds = 1;
    taken.usage.user_seconds = 2;
    both.ends = {{sent}, {taken}};
    for (int i = 1; i <= 100; ++i)
        both.latencies.add(static_cast<std::uint64_t>(i) * 1000);
    const auto testbed = testbed_with({7});
    const std::pair<Work, double> table[] = {{Work::receive, 2}, {Work::transmit, 1}, {Work::answer, 2}};
    for (const auto& [work, seconds] : table) {
        const auto round = make_round(testbed, work, both, costs_of("0"));
        ASSERT_TRUE(round);
        EXPECT_DOUBLE_EQ(round->sample.cpu_seconds.processes, seconds) << to_string(work);
        EXPECT_EQ(round->sample.exchanges.has_value(), work == Work::answer);
        if (!round->sample.exchanges) continue;
        EXPECT_EQ(round->sample.exchanges->count, 100U);
        EXPECT_NEAR(round->sample.exchanges->p50_seconds, 50e-6, 1e-6);
        EXPECT_NEAR(round->sample.exchanges->p99_seconds, 99e-6, 1.5e-6);
    }
    both.ends = {{StreamUse{}}, {StreamUse{}}};
    EXPECT_FALSE(make_round(testbed, Work::receive, both, costs_of("0")));
}

} // namespace
} // namespace affinityd::ttcp

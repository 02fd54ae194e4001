// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame.hpp"
#include "experiments/sharing.hpp"
#include "host/scheduler.hpp"
#include "machine/machines.hpp"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace affinityd::experiments {
namespace {

using machine::test::two_sockets;

std::string cpus_of(const PlacedThreads& placed) {
    std::string text;
    for (const auto& set : placed.cpus)
        text += (text.empty() ? "" : " ") + set.to_list();
    return text;
}

std::vector<std::string> placings_on(const CpuSet& cpus) {
    std::vector<std::string> texts;
    const auto placings = placed_threads(two_sockets(), cpus).value();
    for (const auto& placed : placings)
        texts.push_back(std::string(key_of(placed.placing)) + ": " + cpus_of(placed));
    return texts;
}

TEST(Placings, FollowTheTopology) {
    // Threads 0 and 2 write to one line, 1 and 3 to the other.
    EXPECT_EQ(placings_on(CpuSet::range(0, 7)),
              (std::vector<std::string>{"scheduler: 0-7 0-7 0-7 0-7", "pairs: 0 2 0 2", "neighbours: 0 2 1 3",
                                        "apart: 0 2 4 6", "false_sharing: 0 2 0 2"}));
    EXPECT_EQ(placings_on(CpuSet{1, 5}),
              (std::vector<std::string>{"scheduler: 1,5 1,5 1,5 1,5", "pairs: 1 5 1 5", "apart: 1 1 5 5",
                                        "false_sharing: 1 5 1 5"}));
    EXPECT_EQ(placings_on(CpuSet{0, 1})[1], "pairs: 0 1 0 1") << "one core is better than no pair";
    EXPECT_EQ(placed_threads(two_sockets(), CpuSet{3}).error(), Refusal::one_cpu);
    EXPECT_EQ(placed_threads(two_sockets(), {}).error(), Refusal::one_cpu);
}

/// Each placing with the mean of its runs in ms.
SharingResult times_of(const std::vector<std::pair<Placing, double>>& means) {
    SharingResult times;
    for (const auto& [placing, ms] : means) {
        SharingCase one{{}, {placing, {}}};
        for (int round = 0; round < 12; ++round)
            one.seconds.push_back(ms * 1e-3 * (1 + 0.01 * (round % 5 - 2)));
        times.cases.push_back(one);
    }
    return times;
}

SharingResult read(SharingResult result) {
    read_sharing(result);
    return result;
}

TEST(SharingReading, SaysWhatThePoliciesShouldSay) {
    const auto document = read(times_of(
        {{Placing::scheduler, 10.7}, {Placing::pairs, 3.53}, {Placing::apart, 14}, {Placing::one_line, 12}}));
    EXPECT_EQ(document.cases[1].longer.verdict, measure::Verdict::less);
    EXPECT_NEAR(document.cases[1].longer.change.estimate, 3.53 / 10.7 - 1, 1e-6);
    EXPECT_NE(document.meaning.find("belong on one CPU"), std::string::npos) << document.meaning;
    EXPECT_NE(document.meaning.find("do not write spread: core"), std::string::npos);
    EXPECT_EQ(document.findings.size(), 3U);
    EXPECT_NE(document.findings[2].find("takes 239.9 % (239.9 to 239.9) more time than pinned"),
              std::string::npos)
        << document.findings[2];
    const auto near = read(times_of(
        {{Placing::scheduler, 10}, {Placing::pairs, 12}, {Placing::neighbours, 6}, {Placing::apart, 10}}));
    EXPECT_NE(near.meaning.find("gain most from a CPU of its own for each"), std::string::npos)
        << near.meaning;
    EXPECT_EQ(near.meaning.find("on one CPU"), std::string::npos);
    const auto same = read(times_of({{Placing::scheduler, 10}, {Placing::pairs, 10}, {Placing::apart, 10}}));
    EXPECT_EQ(same.cases[1].longer.verdict, measure::Verdict::none_shown);
    EXPECT_NE(same.meaning.find("No placing was shown to be better"), std::string::npos);
}

/// The sentences about a machine whose placings take so many ms.
std::string meaning_on(const topology::Topology& machine, double pairs, double neighbours, double apart) {
    SharingResult times;
    const auto placings = placed_threads(machine, machine.online).value();
    for (const auto& placed : placings) {
        const std::map<Placing, double> ms{{Placing::scheduler, 10},
                                           {Placing::pairs, pairs},
                                           {Placing::neighbours, neighbours},
                                           {Placing::apart, apart},
                                           {Placing::one_line, 12}};
        SharingCase one{{}, placed};
        for (int round = 0; round < 12; ++round)
            one.seconds.push_back(ms.at(placed.placing) * 1e-3 * (1 + 0.01 * (round % 5 - 2)));
        times.cases.push_back(std::move(one));
    }
    return read(std::move(times)).meaning;
}

topology::Topology four_cores() {
    auto machine = two_sockets();
    machine.cores.clear();
    for (auto& cpu : machine.cpus) {
        cpu.smt = {cpu.id};
        machine.cores.push_back({cpu.id});
    }
    return machine;
}

TEST(SharingReading, WritesTheRulesOfTheBestPlacing) {
    const std::string on_one_cpu =
        "threads: [{name: \"left-*\", cpus: \"0\", bind: cpu}, {name: \"right-*\", cpus: \"2\", bind: cpu}].";
    const std::string on_one_core =
        "on the hardware threads of one core, as in threads: [{name: \"left-*\", cpus: \"0-1\", spread: cpu, "
        "bind: cpu}, {name: \"right-*\", cpus: \"2-3\", spread: cpu, bind: cpu}].";
    const auto pairs = meaning_on(two_sockets(), 4, 6, 14);
    EXPECT_NE(pairs.find("belong on one CPU: give those that share a name one thread rule each, as in " +
                         on_one_cpu),
              std::string::npos)
        << pairs << ": 'bind: core' would let them take both hardware threads";
    EXPECT_NE(
        pairs.find("more to do than one CPU can: a CPU of its own for each, those that share " + on_one_core),
        std::string::npos)
        << pairs;
    EXPECT_NE(pairs.find("do not write spread: socket"), std::string::npos) << "the farthest were measured";
    const auto near = meaning_on(two_sockets(), 6, 4, 10);
    EXPECT_NE(near.find(on_one_core), std::string::npos) << near;
    EXPECT_EQ(near.find("on one CPU"), std::string::npos) << "the better one counts: " << near;
    const auto cores = meaning_on(four_cores(), 10, 4, 10);
    EXPECT_NE(
        cores.find("within one last-level cache, as in threads: [{name: \"left-*\", cpus: \"0-1\", spread: "
                   "cpu, bind: cpu}, {name: \"right-*\", cpus: \"2-3\", spread: cpu, bind: cpu}]; for all "
                   "threads of a process at once that is together: llc with spread: cpu and bind: cpu."),
        std::string::npos)
        << cores;
}

TEST(SharingReading, OfNoiseAloneHardlyEverShowsAnything) {
    constexpr int experiments = 500;
    for (const int rounds : {4, 8, 40}) {
        std::mt19937 random(static_cast<unsigned>(rounds));
        std::lognormal_distribution<double> noise(0, 0.2);
        int claims = 0;
        for (int i = 0; i < experiments; ++i) {
            auto times = times_of({{Placing::scheduler, 1},
                                   {Placing::pairs, 1},
                                   {Placing::neighbours, 1},
                                   {Placing::apart, 1},
                                   {Placing::one_line, 1}});
            for (auto& one : times.cases) {
                one.seconds.clear();
                for (int round = 0; round < rounds; ++round)
                    one.seconds.push_back(1e-3 * noise(random));
            }
            claims += std::ranges::any_of(read(times).findings, [](const std::string& finding) {
                return finding.find("takes as long as") == std::string::npos &&
                       finding.find("may take") == std::string::npos;
            });
        }
        EXPECT_LE(claims, experiments * 6 / 100) << "in any of the findings, " << rounds << " rounds";
    }
}

TEST(SharingReading, OfTooFewRunsHasNoVerdict) {
    auto times = times_of({{Placing::scheduler, 10}, {Placing::pairs, 3}});
    for (auto& one : times.cases)
        one.seconds.resize(3);
    const auto reading = read(times);
    EXPECT_EQ(reading.cases[1].longer.verdict, measure::Verdict::not_enough);
    EXPECT_FALSE(reading.cases[1].mean);
    EXPECT_NE(reading.meaning.find("Too few runs"), std::string::npos);
    EXPECT_EQ(reading.summary, "left to the scheduler 9.9 ms, pinned pairs 2.97 ms");
}

TEST(MeasuresSharing, OnThisMachine) {
    const auto own = host::get_affinity(0).value();
    PlacedThreads free{Placing::scheduler, {own, own, own, own}};
    PlacedThreads one_line{Placing::one_line, {CpuSet{own.first()}, own, own, CpuSet{own.last()}}};
    experiments::Run run;
    const auto times = measure_sharing({free, one_line}, {.rounds = 3, .additions = 1000}, run);
    ASSERT_TRUE(times) << times.error().to_string();
    EXPECT_TRUE(times->is_whole);
    EXPECT_EQ(times->cases[0].seconds.size(), 3U);
    EXPECT_TRUE(std::ranges::all_of(times->cases[1].seconds, [](double time) { return time > 0; }));
    EXPECT_EQ(run.all(), 8U) << "one round to warm up";
    EXPECT_EQ(times->no_counters.empty(), times->cases[0].reads.has_value());
    EXPECT_EQ(host::get_affinity(0), own);
}

TEST(MeasuresSharing, NotWhereNoThreadMayRun) {
    const CpuSet nowhere{CpuSet::max_cpu};
    experiments::Run run;
    const auto times = measure_sharing({{Placing::pairs, {nowhere, nowhere, nowhere, nowhere}}},
                                       {.rounds = 1, .additions = 10}, run);
    ASSERT_FALSE(times);
    EXPECT_NE(times.error().to_string().find("may not run there"), std::string::npos);
}

TEST(MeasuresSharing, UntilItIsStopped) {
    const auto own = host::get_affinity(0).value();
    experiments::Run run;
    run.stop();
    const auto times =
        measure_sharing({{Placing::scheduler, {own, own, own, own}}}, {.rounds = 1000000}, run);
    ASSERT_TRUE(times);
    EXPECT_FALSE(times->is_whole);
    EXPECT_EQ(times->cases[0].seconds.size(), 0U);
}

} // namespace
} // namespace affinityd::experiments

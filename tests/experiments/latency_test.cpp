// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame.hpp"
#include "experiments/latency.hpp"
#include "host/scheduler.hpp"
#include "machine/machines.hpp"

#include <map>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace affinityd::experiments {
namespace {

using Watched = experiments::Run; // a test has a Run of its own

using machine::test::two_sockets;

/// `llcs` groups of `cores` cores of two threads (siblings n and n + all cores), in two sockets.
topology::Topology large(unsigned llcs, unsigned cores) {
    topology::Topology topology;
    const unsigned all = llcs * cores;
    topology.online = topology.present = CpuSet::range(0, 2 * all - 1);
    topology.packages = {{}, {}};
    for (unsigned cpu = 0; cpu < 2 * all; ++cpu) {
        const unsigned core = cpu % all, socket = core / (all / 2);
        topology.packages[socket].insert(cpu);
        topology.cpus.push_back(
            {cpu, static_cast<int>(socket), {}, {}, static_cast<int>(core), socket, {}, {core, core + all}});
        if (cpu < all) topology.cores.push_back({core, core + all});
        if (cpu == core && core % cores == 0)
            topology.caches.push_back(
                {3, topology::Cache::Type::unified, 1U << 20,
                 CpuSet::range(core, core + cores - 1) | CpuSet::range(all + core, all + core + cores - 1)});
    }
    for (unsigned node = 0; node < 2; ++node)
        topology.nodes.push_back({node, topology.packages[node], {}, {}});
    return topology;
}

TEST(PairChoice, OfAFewCpusIsAll) {
    const auto pairs = choose_pairs(two_sockets(), CpuSet::range(0, 7), PairChoice::automatic);
    ASSERT_TRUE(pairs);
    EXPECT_EQ(pairs->size(), 28U);
    EXPECT_EQ(std::set<CpuPair>(pairs->begin(), pairs->end()).size(), 28U);
    EXPECT_FALSE(std::ranges::is_sorted(*pairs)) << "neighbours do not follow each other";
    EXPECT_EQ(pairs, choose_pairs(two_sockets(), CpuSet::range(0, 7), PairChoice::all));
}

TEST(PairChoice, OfCoresAndLlcGroups) {
    const auto cores = choose_pairs(two_sockets(), CpuSet{0, 1, 3, 4}, PairChoice::core);
    ASSERT_TRUE(cores);
    EXPECT_EQ(std::set<CpuPair>(cores->begin(), cores->end()), (std::set<CpuPair>{{0, 3}, {0, 4}, {3, 4}}));
    const auto llcs = choose_pairs(two_sockets(), CpuSet::range(1, 7), PairChoice::llc);
    ASSERT_TRUE(llcs);
    EXPECT_EQ(*llcs, (std::vector<CpuPair>{{1, 4}}));
}

TEST(PairChoice, RefusesWhereThereIsNothingToMeasure) {
    EXPECT_EQ(choose_pairs(two_sockets(), CpuSet{2}, PairChoice::all).error(), Refusal::one_cpu);
    EXPECT_EQ(choose_pairs(two_sockets(), {}, PairChoice::automatic).error(), Refusal::one_cpu);
    EXPECT_EQ(choose_pairs(two_sockets(), CpuSet{2, 3}, PairChoice::core).error(), Refusal::one_core);
    EXPECT_EQ(choose_pairs(two_sockets(), CpuSet::range(0, 3), PairChoice::llc).error(), Refusal::one_llc);
}

/// A large machine where only the chosen pairs have the value that `truth` gives them.
topology::Latencies measured_part(const std::vector<CpuPair>& pairs, const topology::Topology& topology,
                                  double (*truth)(Near)) {
    topology::Latencies latencies(topology.online);
    const Nearness near(topology);
    for (const auto& pair : pairs)
        latencies.set(pair.a, pair.b,
                      truth(near.between(pair.a, pair.b)) * (1 + 0.01 * ((pair.a * 7 + pair.b) % 5)));
    return latencies;
}

double truth_of(Near near) {
    return std::map<Near, double>{
        {Near::core, 8}, {Near::llc, 25}, {Near::node, 95}, {Near::package, 95}, {Near::across, 200}}[near];
}

TEST(PairChoice, OfALargeMachineIsEnoughToFindItsGroups) {
    for (const auto& [llcs, cores] : {std::pair(16U, 8U), std::pair(2U, 64U), std::pair(4U, 32U)}) {
        const auto topology = large(llcs, cores);
        ASSERT_EQ(topology.online.count(), 256U);
        const auto pairs = choose_pairs(topology, topology.online, PairChoice::automatic);
        ASSERT_TRUE(pairs);
        EXPECT_LT(pairs->size(), 4000U) << "of 32,640";
        EXPECT_LT(estimated_seconds(pairs->size(), {}), 60);
        const auto latencies = measured_part(*pairs, topology, truth_of);
        const auto reading = read_latencies(latencies, &topology);
        ASSERT_EQ(reading.levels.size(), llcs == 2 ? 2U : 3U) << llcs << " LLC groups";
        EXPECT_EQ(reading.level_names[0], "cores");
        EXPECT_NE(reading.level_names[1].find("LLC groups"), std::string::npos);
        EXPECT_TRUE(reading.findings.empty()) << reading.findings.front();
    }
}

TEST(GroupNames, AreThoseOfCpuSetExpressions) {
    const auto topology = large(4, 4);
    const auto all = topology.online;
    EXPECT_EQ(name_of_group(topology, CpuSet{1, 17}, all), "core 1");
    EXPECT_EQ(name_of_group(topology, CpuSet::range(4, 7) | CpuSet::range(20, 23), all), "llc 1");
    EXPECT_EQ(name_of_group(topology, CpuSet::range(0, 7) | CpuSet::range(16, 23), all), "node 0 = socket 0");
    EXPECT_EQ(name_of_group(topology, CpuSet{0, 1, 16, 17}, all), "core 0-1");
    EXPECT_EQ(name_of_group(topology, CpuSet{0, 17}, all), "part of llc 0");
    EXPECT_EQ(name_of_group(topology, CpuSet{0, 15}, all), "");
    EXPECT_EQ(name_of_group(topology, CpuSet{4, 5, 6, 7}, CpuSet::range(0, 15)), "llc 1")
        << "of those measured";
}

TEST(Reading, OfAUniformMachineSaysSo) {
    topology::Latencies latencies(CpuSet::range(0, 3));
    for (unsigned b = 0; b < 4; ++b)
        for (unsigned a = 0; a < b; ++a)
            latencies.set(a, b, 20 + 0.1 * (a + b));
    const auto reading = read_latencies(latencies, nullptr);
    EXPECT_TRUE(reading.levels.empty());
    EXPECT_TRUE(reading.findings.empty());
    ASSERT_EQ(reading.distances.size(), 1U);
    EXPECT_EQ(reading.distances[0].name, "all pairs");
    EXPECT_NE(reading.meaning.find("makes no difference"), std::string::npos);
    EXPECT_EQ(reading.summary, "all pairs 20 ns; uniform");
    EXPECT_TRUE(reading.is_uniform);
}

TEST(Reading, TellsDifferencesWithoutGroupsFromNone) {
    const auto reading_of = [](unsigned count, auto ns_of) {
        topology::Latencies latencies(CpuSet::range(0, count - 1));
        for (unsigned b = 0; b < count; ++b)
            for (unsigned a = 0; a < b; ++a)
                latencies.set(a, b, ns_of(a, b));
        return read_latencies(latencies, nullptr);
    };
    const auto chain = reading_of(8, [](unsigned a, unsigned b) { return 40.0 + 5 * (b - a); });
    EXPECT_TRUE(chain.levels.empty());
    EXPECT_FALSE(chain.is_uniform);
    EXPECT_EQ(chain.summary, "all pairs 55 ns; no groups");
    EXPECT_NE(chain.meaning.find("45 ns one way between the nearest two"), std::string::npos)
        << chain.meaning;
    const auto one_near_pair =
        reading_of(8, [](unsigned a, unsigned b) { return a + b == 1 ? 10.0 : 100.0; });
    EXPECT_TRUE(one_near_pair.levels.empty());
    EXPECT_FALSE(one_near_pair.is_uniform) << "one pair is worth having";
    const auto one_slow_pair =
        reading_of(8, [](unsigned a, unsigned b) { return a + b == 1 ? 100.0 : 20.0; });
    EXPECT_TRUE(one_slow_pair.is_uniform) << "one of 28 may be noise; a finding tells of it";
}

TEST(Reading, OfTwoCpusSaysHowNearTheyAreWhereThatIsKnown) {
    topology::Latencies latencies(CpuSet::range(0, 1));
    latencies.set(0, 1, 10);
    EXPECT_EQ(read_latencies(latencies, nullptr).meaning,
              "A message takes 10 ns one way between these two CPUs.");
    const auto sockets = two_sockets();
    EXPECT_TRUE(read_latencies(latencies, &sockets)
                    .meaning.starts_with("A message takes 10 ns one way between these two CPUs (same "));
}

TEST(Reading, ClaimsNothingOfPairsThatWereNotMeasured) {
    topology::Latencies latencies(CpuSet::range(0, 3)); // other programs ran on CPU 3 all the time
    latencies.set(0, 1, 20);
    latencies.set(0, 2, 21);
    const auto reading = read_latencies(latencies, nullptr);
    EXPECT_EQ(reading.not_measured, 4U);
    EXPECT_EQ(reading.summary, "all pairs 20 ns; uniform where measured");
    EXPECT_EQ(reading.meaning,
              "A message takes about as long between the two CPUs of each pair that was "
              "measured, 20 ns one way: as far as this shows, it makes no difference which of "
              "them threads share that talk to each other. Nothing is known of 4 pairs.");
    EXPECT_EQ(read_latencies(topology::Latencies(CpuSet{}), nullptr).not_measured, 0U);
    EXPECT_EQ(read_latencies(topology::Latencies(CpuSet::range(0, 3)), nullptr).meaning, "");
}

/// All pairs of two_sockets() by nearness, then changed by hand.
topology::Latencies by_nearness(const topology::Topology& topology, double (*truth)(Near)) {
    topology::Latencies latencies(topology.online);
    const Nearness near(topology);
    for (const unsigned b : topology.online)
        for (const unsigned a : topology.online)
            if (a < b) latencies.set(a, b, truth(near.between(a, b)));
    return latencies;
}

bool is_told(const LatencyReading& reading, const std::string& text) {
    return std::ranges::any_of(reading.findings, [&](const std::string& finding) {
        return finding.find(text) != std::string::npos;
    });
}

TEST(Reading, TellsOfAChipletInsideOneLlcGroup) {
    auto topology = large(2, 8);
    auto latencies = by_nearness(topology, truth_of);
    for (const unsigned a : CpuSet::range(0, 3) | CpuSet::range(16, 19))
        for (const unsigned b : CpuSet::range(4, 7) | CpuSet::range(20, 23))
            latencies.set(a, b, 60);
    for (const unsigned a : CpuSet::range(8, 11) | CpuSet::range(24, 27))
        for (const unsigned b : CpuSet::range(12, 15) | CpuSet::range(28, 31))
            latencies.set(a, b, 60);
    const auto reading = read_latencies(latencies, &topology);
    ASSERT_EQ(reading.levels.size(), 3U);
    EXPECT_EQ(reading.level_names[1], "");
    EXPECT_TRUE(is_told(
        reading, "Inside llc 0, CPUs 0-3,16-19 and 4-7,20-23 are groups of their own, with 25 ns within"));
    EXPECT_TRUE(is_told(reading, "So it is in 2 LLC groups."));
    EXPECT_TRUE(reading.meaning.ends_with("the line 'together: measured' (with 'smt: avoid', if they compute "
                                          "as much as they talk), or 'near: measured' if they are of several "
                                          "processes puts such threads next to each other."))
        << reading.meaning;
}

TEST(Reading, NamesTheLineOfAPolicyForWhatItFound) {
    const auto line_for = [](double llc, double node) {
        auto topology = large(4, 4);
        topology::Latencies latencies(topology.online);
        const Nearness near(topology);
        for (const unsigned b : topology.online)
            for (const unsigned a : topology.online)
                if (a < b)
                    latencies.set(a, b,
                                  std::map<Near, double>{{Near::core, 8},
                                                         {Near::llc, llc},
                                                         {Near::node, node},
                                                         {Near::package, node},
                                                         {Near::across, 200}}[near.between(a, b)]);
        return read_latencies(latencies, &topology).meaning;
    };
    EXPECT_TRUE(line_for(25, 90).ends_with("A policy's 'bind: llc', the default, sees to that."))
        << line_for(25, 90);
    EXPECT_TRUE(line_for(90, 90).ends_with("A policy's 'bind: node' sees to that.")) << line_for(90, 90);
    auto sockets = two_sockets();
    sockets.nodes.clear();
    sockets.caches.clear();
    sockets.dies.clear();
    const auto meaning = read_latencies(by_nearness(sockets, truth_of), &sockets).meaning;
    EXPECT_TRUE(meaning.ends_with("'bind: llc', the default, sees to that."))
        << "what shares no cache goes by sockets: " << meaning;
}

TEST(Reading, OfSinglePairsNamesTheLineThatGoesByFigures) {
    topology::Topology mesh;
    mesh.online = mesh.present = CpuSet::range(0, 7);
    mesh.packages = {mesh.online};
    for (unsigned cpu = 0; cpu < 8; ++cpu) {
        mesh.cpus.push_back({cpu, 0, {}, {}, static_cast<int>(cpu), {}, {}, {cpu}});
        mesh.cores.push_back({cpu});
    }
    topology::Latencies latencies(mesh.online);
    for (unsigned b = 0; b < 8; ++b)
        for (unsigned a = 0; a < b; ++a)
            latencies.set(a, b, 40 + 5 * (b - a));
    const auto reading = read_latencies(latencies, &mesh);
    ASSERT_TRUE(reading.levels.empty());
    EXPECT_TRUE(reading.meaning.ends_with("A policy finds the nearest with the line 'together: measured', or "
                                          "'near: measured' if they are of several processes."))
        << reading.meaning;
    EXPECT_EQ(read_latencies(latencies, nullptr).meaning.find("measured"), std::string::npos)
        << "a table without a machine has no policies";
}

TEST(Reading, TellsOfAnOddStopAndOfNoSinglePair) {
    const auto topology = large(2, 8);
    auto latencies = by_nearness(topology, truth_of);
    latencies.set(2, 5, 80);
    for (const unsigned cpu : CpuSet::range(8, 15) | CpuSet::range(24, 31))
        if (cpu != 12 && cpu != 28) latencies.set(12, cpu, 34);
    const auto reading = read_latencies(latencies, &topology);
    EXPECT_TRUE(is_told(reading, "CPU 12 is farther away than others are (same LLC): 34 ns, usual are 25."));
    EXPECT_EQ(reading.findings.size(), 1U);
}

TEST(Reading, TellsOfLlcGroupsThatMakeNoDifference) {
    const auto topology = large(4, 4);
    const auto flat = [](Near near) {
        return near == Near::core ? 8.0 : near == Near::across ? 200.0 : 25.0;
    };
    const auto reading = read_latencies(by_nearness(topology, flat), &topology);
    EXPECT_TRUE(is_told(reading, "several LLC groups, but same node (25 ns) is as near as same LLC (25 ns)"));
}

TEST(PingPong, MeasuresWhatTwoCpusNeed) {
    const auto cpus = *host::get_affinity(0);
    if (cpus.count() < 2) GTEST_FAIL() << "this test needs two CPUs";
    const CpuPair pair{cpus.first(), cpus.last()};
    for (const auto means : {Means::cas, Means::store}) {
        const Watched run;
        auto samples = bounce(pair, {means, 10, 300}, run);
        // On a busy machine some are lost, or all of them.
        for (int again = 0; samples && samples->ns.empty() && again < 100; ++again)
            samples = bounce(pair, {means, 10, 300}, run);
        ASSERT_TRUE(samples) << samples.error().to_string();
        ASSERT_FALSE(samples->ns.empty());
        EXPECT_LE(samples->ns.size(), 10U);
        for (const double ns : samples->ns) {
            EXPECT_GT(ns, 1);
            EXPECT_LT(ns, 1e7);
        }
    }
}

TEST(PingPong, OfACpuThatMayNotBeUsedIsAnError) {
    const Watched run;
    const unsigned first = host::get_affinity(0)->first();
    EXPECT_FALSE(bounce({first, CpuSet::max_cpu}, {}, run));
    EXPECT_FALSE(bounce({CpuSet::max_cpu, first}, {}, run));
}

TEST(PingPong, EndsWhenItIsStopped) {
    const auto cpus = *host::get_affinity(0);
    Watched run;
    std::jthread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        run.stop();
    });
    const auto samples = bounce({cpus.first(), cpus.last()}, {Means::cas, 10000, 10000}, run);
    ASSERT_TRUE(samples);
    EXPECT_LT(samples->ns.size(), 10000U);
}

TEST(Matrix, HasNoIntervalsOfTooFewSamples) {
    const auto cpus = *host::get_affinity(0);
    Watched run;
    const CpuPair pair{cpus.first(), cpus.last()};
    const auto matrix = measure_pairs({pair.a, pair.b}, {"model", {}}, {pair}, {Means::store, 3, 100}, run);
    ASSERT_TRUE(matrix) << matrix.error().to_string();
    if (matrix->pairs.empty()) return; // a machine so busy that no sample came through
    EXPECT_FALSE(matrix->pairs.front().low);
    EXPECT_FALSE(matrix->pairs.front().high);
}

TEST(Matrix, HasMeansWithTheirIntervals) {
    const auto cpus = *host::get_affinity(0);
    Watched run;
    const CpuPair pair{cpus.first(), cpus.last()};
    const auto matrix = measure_pairs({pair.a, pair.b}, {"model", {}}, {pair}, {Means::store, 12, 100}, run);
    ASSERT_TRUE(matrix) << matrix.error().to_string();
    EXPECT_TRUE(matrix->is_whole);
    ASSERT_EQ(matrix->pairs.size() + matrix->disturbed.size(), 1U);
    if (matrix->pairs.empty()) return; // a machine so busy that no sample came through
    const auto& figures = matrix->pairs.front();
    ASSERT_TRUE(figures.low && figures.high);
    EXPECT_LE(*figures.low, figures.ns);
    EXPECT_GE(*figures.high, figures.ns);
    EXPECT_FLOAT_EQ(static_cast<float>(*matrix->latencies.ns(pair.a, pair.b)),
                    static_cast<float>(figures.ns));
}

} // namespace
} // namespace affinityd::experiments

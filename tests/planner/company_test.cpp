// SPDX-License-Identifier: Apache-2.0
// `near: measured` and `together: measured`: who belongs together is close together.
#include "planner/balance.hpp"
#include "world.hpp"

#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <tuple>

#include <fmt/format.h>

namespace affinityd::planner {
namespace {

using test::thread;
using topology::Latencies;

/// All pairs of eight CPUs alike, but for one.
Latencies latencies(unsigned a, unsigned b, double ns = 20) {
    Latencies measured(CpuSet::range(0, 7));
    for (unsigned i = 0; i < 8; ++i)
        for (unsigned j = 0; j < i; ++j)
            measured.set(i, j, 100);
    measured.set(a, b, ns);
    return measured;
}

/// Groups of two, far from each other: {0, 4}, {1, 5}, {2, 6}, {3, 7}.
Latencies in_pairs(double near, double far) {
    Latencies measured(CpuSet::range(0, 7));
    for (unsigned i = 0; i < 8; ++i)
        for (unsigned j = 0; j < i; ++j)
            measured.set(i, j, i - j == 4 ? near : far);
    return measured;
}

machine::Machine cores(std::optional<Latencies> measured = std::nullopt) {
    auto machine = test::without_smt(8);
    if (measured)
        machine.latencies.matrix = std::make_shared<const machine::LatencyMatrix>(std::move(*measured));
    return machine;
}

/// A process with threads that are found one after the other.
struct Process {
    std::vector<inventory::Thread> threads;
    explicit Process(int pid, std::size_t count, const std::string& comm = "a") {
        for (std::size_t i = 0; i < count; ++i)
            threads.push_back(thread(pid + static_cast<int>(i), comm));
    }
    /// Where they are after a pass.
    std::string settle(test::World& world, std::size_t policy = 0) {
        std::string text;
        for (std::size_t i = 0; i < threads.size(); ++i) {
            auto& one = threads[i];
            const auto plan = plan_thread(world.planning(), {.id = threads.front().id, .policy = policy},
                                          {one, static_cast<unsigned>(i)});
            world.apply(one, plan);
            text += (text.empty() ? "" : " ") + one.allowed.to_list();
        }
        return text;
    }
    /// Why the thread is there.
    std::string reason(test::World& world, std::size_t which, std::size_t policy = 0) {
        const auto target =
            place(world.placements, world.assignments, {.id = threads.front().id, .policy = policy},
                  {threads[which], static_cast<unsigned>(which)});
        return to_string(reason_of(world.placements, *target), world.set.policies[policy].name);
    }
};

const std::string together = "match: {comm: a}\ntogether: measured\n";

TEST(Company, APairGetsTheClosestCpusByMeasuredLatency) {
    test::World world({together}, cores(latencies(2, 7)));
    Process pair(100, 2);
    EXPECT_EQ(pair.settle(world), "2 7");
    EXPECT_EQ(pair.reason(world, 0), "policy p0, close to the one that it belongs to, on CPU 7, by measured "
                                     "latency, 20.0 ns: slot 2, bound to its CPU");
    EXPECT_EQ(pair.settle(world), "2 7") << "a second pass moves nobody";
}

TEST(Company, WhoHasToShareACpuIsSaidToBeOnTheSame) {
    test::World world({together + "cpus: \"2,7\"\n"}, cores(latencies(2, 7)));
    Process four(100, 4);
    four.settle(world);
    std::string reasons;
    for (std::size_t i = 0; i < 4; ++i)
        reasons += four.reason(world, i) + "\n";
    EXPECT_NE(reasons.find("close to the 3 that it belongs to, the next on the same CPU"), std::string::npos)
        << reasons;
    EXPECT_EQ(reasons.find("other CPUs of these groups"), std::string::npos) << reasons;
}

TEST(Company, WhoSharesSeveralCpusIsSaidToBeOnTheSame) {
    test::World world({together + "cpus: \"2,3\"\nspread: llc\nbind: llc\n"}, cores(latencies(2, 7)));
    Process pair(100, 2);
    EXPECT_EQ(pair.settle(world), "2-3 2-3");
    const auto reason = pair.reason(world, 1);
    EXPECT_NE(reason.find("close to the one that it belongs to, on the same CPUs"), std::string::npos)
        << reason;
    EXPECT_EQ(reason.find("other CPUs of these groups"), std::string::npos) << reason;
}

TEST(Company, WithoutAMatrixTheTopologyDecides) {
    test::World world({together}, cores());
    Process first(100, 2), second(200, 2);
    EXPECT_EQ(first.settle(world), "0 1") << "of one cache group";
    EXPECT_EQ(second.settle(world), "2 3");
    EXPECT_EQ(first.reason(world, 1), "policy p0, close to the one that it belongs to, on CPU 0, by "
                                      "topology, as no latencies were measured here: slot 1, bound to its "
                                      "CPU");
}

TEST(Company, AnotherMachinesLatenciesDoNotCountAndThatIsSaid) {
    auto machine = cores();
    machine.latencies.unused = "the latencies that are kept were measured on another machine";
    test::World world({together, "match: {comm: b}\n"}, machine);
    Process pair(100, 2);
    EXPECT_EQ(pair.settle(world), "0 1");
    ASSERT_EQ(world.placements.problems.size(), 1U) << "only of the policy that asks";
    EXPECT_EQ(world.placements.problems[0].policy, "p0");
    EXPECT_NE(pair.reason(world, 0).find("by topology, as latencies were measured on another machine"),
              std::string::npos);
}

TEST(Company, WhatOthersUseIsNotFree) {
    test::World world({together, "match: {comm: b}\ncpus: '7'\n"}, cores(in_pairs(20, 100)));
    Process other(50, 1, "b");
    EXPECT_EQ(other.settle(world, 1), "7");
    std::string all;
    for (int pid = 100; pid < 400; pid += 100)
        all += Process(pid, 2).settle(world) + "; ";
    EXPECT_EQ(all, "0 4; 1 5; 2 6; ") << "3 is left, whose partner is taken";
}

TEST(Company, HardwareThreadsOfACoreAreUsedUnlessThePolicyAvoidsThem) {
    for (const bool avoid : {false, true}) {
        test::World world({together + (avoid ? "smt: avoid\n" : "")}, test::plain());
        const auto& topology = world.machine.topology;
        Process pair(100, 2);
        pair.settle(world);
        const CpuSet core = topology.core_of(pair.threads[0].allowed.first());
        EXPECT_EQ(core.contains(pair.threads[1].allowed), !avoid);
    }
}

TEST(Company, MoreThreadsThanCpusAreSpreadEvenly) {
    test::World world({together}, cores(latencies(2, 7)));
    Process many(100, 16);
    many.settle(world);
    std::map<CpuSet, int> count;
    for (const auto& one : many.threads)
        ++count[one.allowed];
    EXPECT_EQ(count.size(), 8U);
    for (const auto& [cpus, threads] : count)
        EXPECT_EQ(threads, 2) << cpus.to_list();
}

TEST(Company, ThreadsOfARuleBelongTogetherInEachProcess) {
    test::World world({"match: {comm: a}\nthreads:\n  - {name: io, near: measured}\n  - {leave: true}\n"},
                      cores(in_pairs(20, 100)));
    for (int pid = 100; pid < 500; pid += 100) {
        std::vector<inventory::Thread> threads{thread(pid, "a"), thread(pid + 1, "io"),
                                               thread(pid + 2, "io")};
        for (unsigned i = 0; i < threads.size(); ++i)
            world.apply(threads[i],
                        plan_thread(world.planning(), {.id = threads[0].id, .policy = 0}, {threads[i], i}));
        EXPECT_EQ(threads[1].allowed.first() + 4, threads[2].allowed.first());
    }
}

TEST(Company, ProcessesOfAPolicyComeNearToEachOther) {
    test::World world({"match: {comm: a}\nnear: measured\n"}, cores(latencies(1, 6)));
    Process left(100, 1), right(200, 1);
    EXPECT_EQ(left.settle(world), "1");
    EXPECT_EQ(right.settle(world), "6");
}

TEST(Company, OurMasksStayAfterARestartAndOthersDoNotCount) {
    test::World world({together}, cores(latencies(2, 7)));
    Process pair(100, 2);
    pair.settle(world);
    test::World restarted({together}, cores(latencies(0, 5)));
    restarted.book = world.book;
    EXPECT_EQ(pair.settle(restarted), "2 7") << "no task moves because the daemon was restarted";
    Process pinned(300, 2);
    pinned.threads[0].allowed = {3};
    test::World fresh({together}, cores(latencies(2, 7)));
    EXPECT_EQ(pinned.settle(fresh), "2 7") << "somebody else has pinned it";
}

TEST(Company, NoiseInANewMatrixMovesNobody) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> noise(0.8, 1.2);
    const auto noisy = [&] {
        auto measured = in_pairs(20, 100);
        for (unsigned i = 0; i < 8; ++i)
            for (unsigned j = 0; j < i; ++j)
                measured.set(i, j, *measured.ns(i, j) * noise(random));
        return measured;
    };
    test::World world({together}, cores(noisy()));
    Process one(100, 2), two(200, 3);
    const auto settle = [&] {
        const auto first = one.settle(world);
        return first + "; " + two.settle(world);
    };
    const auto before = settle();
    for (int round = 0; round < 20; ++round) {
        world.machine = cores(noisy());
        world.placements = compile(world.set, world.machine, {}, &world.placements);
        EXPECT_EQ(settle(), before);
    }
}

TEST(Company, AMatrixThatShowsMuchCloserCpusMovesTheCompany) {
    test::World world({together}, cores());
    Process pair(100, 2);
    EXPECT_EQ(pair.settle(world), "0 1") << "by topology";
    world.machine = cores(in_pairs(20, 100));
    world.placements = compile(world.set, world.machine, {}, &world.placements);
    EXPECT_EQ(pair.settle(world), "0 4") << "who can stay, stays";
    EXPECT_EQ(pair.settle(world), "0 4");
}

TEST(Company, ANewMatrixPutsNobodyOnOneCpuAndTakesApartWhoIs) {
    test::World world({together + "cpus: \"2,7\"\n", "match: {comm: b}\ncpus: '7'\n"},
                      cores(latencies(2, 7)));
    Process pair(100, 2), other(50, 1, "b");
    const auto measure_again = [&] {
        world.machine = cores(latencies(2, 7));
        world.placements = compile(world.set, world.machine, {}, &world.placements);
    };
    EXPECT_EQ(pair.settle(world), "2 7");
    EXPECT_EQ(other.settle(world, 1), "7");
    world.assignments.weigh({"p1", 0, ""}, other.threads[0].id, one_cpu);
    measure_again();
    EXPECT_EQ(pair.settle(world), "2 7") << "somebody else is busy there for a moment";
    Process late(200, 2);
    EXPECT_EQ(late.settle(world), "2 2");
    for (const auto& one : pair.threads)
        world.assignments.leave(one.id);
    world.assignments.weigh({"p1", 0, ""}, other.threads[0].id, 0);
    measure_again();
    EXPECT_EQ(late.settle(world), "2 7");
}

TEST(Company, ARedealLeavesThemTogether) {
    auto machine = test::plain();
    test::World world({together, "match: {comm: b}\nspread: cpu\nbind: cpu\n"}, machine);
    Process pair(100, 2);
    const auto before = pair.settle(world);
    for (int i = 0; i < 2; ++i)
        world.assignments.weigh({"p0", 0, ""}, pair.threads[static_cast<std::size_t>(i)].id, one_cpu);
    EXPECT_TRUE(crowdings(world.placements, world.assignments).empty())
        << "two busy threads on one core, while others are free";
    EXPECT_EQ(pair.settle(world), before);
}

TEST(Company, APolicyThatBeginsToMeasureMovesItsTasksAndOneThatEndsDoesNot) {
    const std::string plain = "match: {comm: a}\nspread: cpu\nbind: cpu\n";
    test::World world({plain}, cores(latencies(2, 7)));
    Process pair(100, 2);
    const auto before = pair.settle(world);
    EXPECT_NE(before, "2 7");
    world.reload({together});
    EXPECT_EQ(pair.settle(world), "2 7");
    world.reload({plain});
    EXPECT_EQ(pair.settle(world), "2 7");
    EXPECT_FALSE(world.assignments.companies().find({"p0", 0, pair.threads[0].id}));
}

TEST(Company, WhoLeavesMakesRoom) {
    test::World world({together}, cores(in_pairs(20, 100)));
    Process one(100, 2), two(200, 2);
    EXPECT_EQ(one.settle(world), "0 4");
    EXPECT_EQ(two.settle(world), "1 5");
    for (const auto& task : one.threads)
        world.assignments.leave(task.id);
    EXPECT_EQ(Process(300, 2).settle(world), "0 4");
}

TEST(Company, PairsThatWereNotMeasuredCountAsOthersThatAreAlike) {
    Latencies some(CpuSet::range(0, 5)); // 6 and 7 were not measured
    for (unsigned i = 0; i < 6; ++i)
        for (unsigned j = 0; j < i; ++j)
            some.set(i, j, i / 4 == j / 4 ? 40 : 120); // nodes are 0-3 and 4-7
    some.set(4, 5, 30);
    const auto machine = cores(some);
    const Closeness closeness(machine.topology, machine.latencies.matrix);
    EXPECT_EQ(closeness.between(0, 1), 40'000'000U);
    EXPECT_EQ(closeness.between(6, 7), 40'000'000U) << "of one node: the median of those that were measured";
    EXPECT_EQ(closeness.between(0, 7), 120'000'000U);
    EXPECT_FALSE(closeness.ns(6, 7));
    test::World world({together}, machine);
    EXPECT_EQ(Process(100, 2).settle(world), "4 5");
}

/// One CPU of each core, as `measure latency --pairs core` keeps them.
Latencies of_cores() {
    Latencies some(CpuSet{0, 2, 4, 6});
    for (const unsigned a : {0U, 2U, 4U, 6U})
        for (const unsigned b : {0U, 2U, 4U, 6U})
            if (a < b) some.set(a, b, a / 4 == b / 4 ? 40 : 120);
    return some;
}

TEST(Company, HardwareThreadsThatWereNotMeasuredAreClosestAllTheSame) {
    auto machine = test::plain();
    machine.latencies.matrix = std::make_shared<const machine::LatencyMatrix>(of_cores());
    const Closeness closeness(machine.topology, machine.latencies.matrix);
    EXPECT_EQ(closeness.between(0, 1), 20'000'000U) << "half of what is next";
    EXPECT_EQ(closeness.usual(CpuSet{0}, CpuSet{1}), 20'000'000U);
    EXPECT_EQ(closeness.between(1, 3), 40'000'000U) << "as others of one node";
    EXPECT_EQ(closeness.usual(CpuSet{1}, CpuSet{3}), 40'000'000U);
    EXPECT_EQ(closeness.between(1, 7), 120'000'000U);
    EXPECT_TRUE(closeness.is_guess(0, 1));
    EXPECT_FALSE(closeness.is_guess(1, 3));
    test::World world({together}, machine);
    Process pair(100, 2);
    EXPECT_EQ(pair.settle(world), "0 1");
    EXPECT_EQ(pair.reason(world, 0),
              "policy p0, close to the one that it belongs to, on CPU 1, by topology, as "
              "no latency was measured between any CPUs as close as these: slot 0, "
              "bound to its CPU");
    Process four(200, 3);
    EXPECT_EQ(four.settle(world), "2 3 4");
    EXPECT_NE(
        four.reason(world, 0).find("by topology, as no latency was measured between any CPUs as close as "
                                   "these, 120.0 ns on average to the one that was measured"),
        std::string::npos)
        << four.reason(world, 0);
}

TEST(Company, WhatWasNotMeasuredIsInTheTopologysOrder) {
    const auto machine = test::plain();
    const auto closeness_with = [&](std::vector<std::tuple<unsigned, unsigned, double>> pairs) {
        Latencies some(CpuSet::range(0, 7));
        for (const auto& [a, b, ns] : pairs)
            some.set(a, b, ns);
        return Closeness(machine.topology, std::make_shared<const machine::LatencyMatrix>(std::move(some)));
    };
    const auto ends = closeness_with({{0, 1, 10}, {0, 4, 100}});
    EXPECT_EQ(ends.between(6, 7), 10'000'000U);
    EXPECT_EQ(ends.between(0, 2), 55'000'000U) << "of one node: between a core and two nodes";
    EXPECT_EQ(ends.between(2, 6), 100'000'000U);
    const auto near = closeness_with({{0, 1, 10}, {0, 2, 30}, {1, 3, 50}});
    EXPECT_GT(near.between(0, 4), 50'000'000U) << "farther than all that was measured";
    EXPECT_LT(near.between(0, 4), 51'000'000U) << "and nobody knows by how much";
    const auto odd = closeness_with({{0, 1, 90}, {0, 4, 60}});
    EXPECT_EQ(odd.between(0, 2), 90'000'000U) << "what was measured does not agree with the topology";
    const auto nothing = closeness_with({});
    EXPECT_LT(nothing.between(0, 1), nothing.between(0, 2));
    EXPECT_LT(nothing.between(0, 2), nothing.between(0, 4));
}

TEST(Company, ManyPairsThatWereNotMeasuredAreEstimatedAtOnce) {
    constexpr unsigned cpus = 512; // half of them measured, and each pair of these another time
    Latencies half(CpuSet::range(0, cpus / 2 - 1));
    for (unsigned a = 0; a < cpus / 2; ++a)
        for (unsigned b = 0; b < a; ++b)
            half.set(a, b, 100 + (a * 31 + b * 17) % 997 / 100.0);
    const auto matrix = std::make_shared<const machine::LatencyMatrix>(std::move(half));
    const auto machine = test::without_smt(cpus);
    const auto begin = std::chrono::steady_clock::now();
    const Closeness closeness(machine.topology, matrix);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    std::printf("measured: ways between %u CPUs of which half were measured: %.1f ms\n", cpus, took.count());
    EXPECT_LT(took.count(), 500) << "the daemon serves nobody meanwhile";
    EXPECT_NEAR(static_cast<double>(closeness.between(cpus - 2, cpus - 1)), 105e6, 2e6);
}

} // namespace
} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
// `together: measured` and `near: measured`: groups by measured latency count in place of cache groups.
#include "world.hpp"

namespace affinityd::planner {
namespace {

/// Sixteen CPUs in two cache groups. CPUs whose numbers are alike modulo `groups` are close.
machine::Machine measured(unsigned groups) {
    auto machine = test::without_smt(16);
    topology::Latencies latencies(machine.topology.online);
    for (unsigned a = 0; a < 16; ++a)
        for (unsigned b = 0; b < a; ++b)
            latencies.set(a, b, a % groups == b % groups ? 25 : 80);
    machine::use_latencies(machine, {topology::measured_level(latencies, machine.topology), "", 0});
    return machine;
}

/// Threads of one process, placed one after the other.
std::vector<std::string> places(test::World& world, int pid, int count, std::size_t policy = 0) {
    std::vector<std::string> cpus;
    for (int i = 0; i < count; ++i) {
        auto task = test::thread(pid + i, "a", world.machine.topology.online);
        const auto plan = plan_thread(world.planning(), {.id = test::thread(pid, "a").id, .policy = policy},
                                      {task, static_cast<unsigned>(i)});
        world.apply(task, plan);
        cpus.push_back(task.allowed.to_list());
    }
    return cpus;
}

using Lists = std::vector<std::string>;

TEST(Measured, AProcessStaysInOneGroupOfThoseThatWereMeasured) {
    test::World world({"match: {comm: a}\ntogether: measured\n"}, measured(4));
    EXPECT_EQ(places(world, 100, 4), (Lists{"0", "4", "8", "12"}));
    EXPECT_EQ(places(world, 200, 3), (Lists{"1", "5", "9"}));
}

TEST(Measured, CacheGroupsCountWhereNothingWasMeasured) {
    test::World world({"match: {comm: a}\ntogether: measured\n"}, test::without_smt(16));
    EXPECT_EQ(places(world, 100, 3), (Lists{"0", "1", "2"}));
    EXPECT_EQ(places(world, 200, 2), (Lists{"8", "9"}));
}

TEST(Measured, TasksComeIntoTheGroupOfTheOthersWhileItHasFreeCpus) {
    test::World world({"match: {comm: a}\nnear: measured\n", "match: {comm: b}\ncpus: \"0\"\nbind: cpu\n"},
                      measured(4));
    EXPECT_EQ(places(world, 300, 1, 1), Lists{"0"});
    EXPECT_EQ(places(world, 100, 5), (Lists{"9", "13", "1", "5", "10"}));
}

TEST(Measured, AllCpusAreOneGroupWhereNoneAreCloser) {
    auto machine = measured(1);
    EXPECT_EQ(machine.topology.measured, std::vector<CpuSet>{machine.topology.online});
    EXPECT_EQ(machine.latencies.level->ns, 25);
}

TEST(Measured, CpusThatWereNotMeasuredAreInTheRestOfTheirCacheGroup) {
    auto machine = test::without_smt(16);
    machine::use_latencies(machine, {topology::LatencyLevel{25, {CpuSet{0, 1}, CpuSet{2, 3}}}, "", 0});
    EXPECT_EQ(machine.topology.measured,
              (std::vector<CpuSet>{CpuSet{0, 1}, CpuSet{2, 3}, CpuSet::range(4, 7), CpuSet::range(8, 15)}));
}

TEST(Measured, TheReasonSaysTheNanoseconds) {
    test::World world({"match: {comm: a}\nnear: measured\n"}, measured(4));
    const auto text = [&] {
        auto task = test::thread(100, "a", world.machine.topology.online);
        return world.plan(task).action->reason.text;
    };
    EXPECT_EQ(text(),
              "policy p0, among CPUs 0,4,8,12, by measured latency, 25.0 ns: slot 0, bound to its CPU");
    machine::use_latencies(world.machine, {});
    world.placements = compile(world.set, world.machine, {});
    EXPECT_NE(text().find("among CPUs 0-7, by topology, as no latencies were measured here"),
              std::string::npos)
        << text();
}

} // namespace
} // namespace affinityd::planner

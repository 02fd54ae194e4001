// SPDX-License-Identifier: Apache-2.0
// Tasks that a cpuset keeps from some slots of their policy change places among the others only.
#include "planner/crowding.hpp"
#include "world.hpp"

#include <functional>
#include <map>
#include <set>

namespace affinityd::planner {
namespace {

using test::World;

constexpr auto each_a_cpu = "match: {comm: app}\nspread: cpu\nbind: cpu\n";

/// Threads of one process in a cpuset.
struct Pod {
    CpuSet cpuset;
    std::vector<inventory::Thread> threads;
    std::map<int, Weight> weights = {}; ///< by tid; others use next to nothing
};

Pod pod(const World& world, int pid, int threads, const CpuSet& cpuset) {
    Pod pod{cpuset, {}};
    for (int i = 0; i < threads; ++i)
        pod.threads.push_back(test::thread(pid + i, "app", cpuset & world.machine.topology.online));
    return pod;
}

/// All are placed and weighed; false: one was given what its cpuset does not have.
bool pass(World& world, Pod& pod) {
    bool is_inside = true;
    std::map<int, DistributionId> places;
    for (auto& thread : pod.threads) {
        const auto plan = plan_thread(
            world.planning(), {.id = pod.threads.front().id, .policy = 0, .cpuset = &pod.cpuset}, {thread});
        world.apply(thread, plan);
        is_inside = is_inside && plan.target && pod.cpuset.contains(thread.allowed);
        if (plan.target) places.emplace(thread.id.tid, plan.target->distribution);
    }
    for (const auto& thread : pod.threads)
        if (const auto place = places.find(thread.id.tid); place != places.end()) {
            const auto weight = pod.weights.find(thread.id.tid);
            world.assignments.weigh(*world.assignments.number(place->second), thread.id,
                                    weight == pod.weights.end() ? one_cpu / 500 : weight->second);
        }
    return is_inside;
}

/// How many moved.
std::size_t relieve(World& world) {
    const auto found = crowdings(world.placements, world.assignments);
    for (const auto& move : found)
        world.assignments.move(move.task, move.table, move.from, move.to);
    return found.size();
}

TEST(Cpuset, BusyTasksThatShareACpuAreTakenApartWithinIt) {
    for (const std::string bind : {"cpu", "core"}) {
        World world({"match: {comm: app}\nspread: " + bind + "\nbind: " + bind + "\n"}, test::without_smt(8));
        auto tasks = pod(world, 100, 8, CpuSet::range(0, 3));
        ASSERT_TRUE(pass(world, tasks));
        ASSERT_EQ(tasks.threads[0].allowed, tasks.threads[4].allowed) << "nothing was known of them";
        tasks.weights = {{100, one_cpu}, {104, one_cpu}};
        for (int i = 0; i < 10; ++i)
            pass(world, tasks);
        EXPECT_EQ(relieve(world), 1U) << bind;
        EXPECT_TRUE(pass(world, tasks));
        EXPECT_NE(tasks.threads[0].allowed, tasks.threads[4].allowed) << bind;
        EXPECT_EQ(relieve(world), 0U);
    }
}

TEST(Cpuset, TwoOfThemShareAPolicyAndEachKeepsItsTasks) {
    World world({each_a_cpu}, test::without_smt(8));
    auto one = pod(world, 100, 4, CpuSet{0, 1}), other = pod(world, 200, 4, CpuSet{1, 2, 3}),
         free = pod(world, 300, 2, CpuSet::range(0, 7));
    const auto pass_all = [&] {
        const bool is_inside = pass(world, one) && pass(world, other);
        return pass(world, free) && is_inside;
    };
    ASSERT_TRUE(pass_all());
    for (auto* some : {&one, &other})
        for (const auto& thread : some->threads)
            if (thread.allowed == some->threads.front().allowed) some->weights[thread.id.tid] = one_cpu;
    for (int round = 0; round < 15; ++round) {
        ASSERT_TRUE(pass_all()) << round;
        relieve(world);
    }
    ASSERT_TRUE(pass_all());
    std::set<std::string> busy;
    for (const auto* some : {&one, &other})
        for (const auto& thread : some->threads)
            if (some->weights.contains(thread.id.tid)) busy.insert(thread.allowed.to_list());
    EXPECT_GE(busy.size(), 3U); // a fourth would need a task to make room first
}

TEST(Cpuset, AnAnswerSaysWhichOneCutsATaskUntilNoneDoes) {
    World world({each_a_cpu}, test::without_smt(8));
    auto& assignments = world.assignments;
    auto tasks = pod(world, 100, 3, CpuSet{0, 1});
    const auto cpuset = [&](int tid) {
        const auto seat = assignments.seats().find(test::thread(tid, "app").id);
        return seat == assignments.seats().end() ? "no seat" : seat->second.cpuset.to_list();
    };
    ASSERT_TRUE(pass(world, tasks));
    EXPECT_EQ(cpuset(100), "0-1");
    EXPECT_EQ(cpuset(102), "0-1");
    tasks.cpuset = CpuSet{0, 3};
    ASSERT_TRUE(pass(world, tasks));
    EXPECT_EQ(cpuset(100), "0,3");
    assignments.drop(tasks.threads[1].id);
    EXPECT_EQ(cpuset(101), "no seat");
    tasks.threads.pop_back();
    tasks.threads.pop_back();
    tasks.cpuset = CpuSet::range(0, 7);
    ASSERT_TRUE(pass(world, tasks));
    EXPECT_EQ(cpuset(100), "");
    EXPECT_EQ(cpuset(102), "0,3");
}

} // namespace
} // namespace affinityd::planner

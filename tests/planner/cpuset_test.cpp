// SPDX-License-Identifier: Apache-2.0
// Tasks that a cpuset keeps from some slots of their policy are dealt anew among the others.
#include "planner/redeal.hpp"
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
            world.assignments.weigh(place->second, thread.id,
                                    weight == pod.weights.end() ? one_cpu / 500 : weight->second);
        }
    return is_inside;
}

/// How well they were placed before.
Goodness redeal(World& world, std::size_t* moved = nullptr) {
    Redeal redeal(world.placements, world.assignments);
    while (!redeal.step([] { return true; })) {
    }
    for (const auto& move : redeal.moves())
        world.assignments.move(move.task, move.table, move.from, move.to);
    if (moved != nullptr) *moved = redeal.moves().size();
    return redeal.goodness();
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
        std::size_t moved = 0;
        EXPECT_LT(redeal(world, &moved).balance(), 0.55) << bind;
        EXPECT_EQ(moved, 1U);
        EXPECT_TRUE(pass(world, tasks));
        EXPECT_NE(tasks.threads[0].allowed, tasks.threads[4].allowed) << bind;
        EXPECT_GT(redeal(world, &moved).balance(), 0.95);
        EXPECT_EQ(moved, 0U);
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
        redeal(world);
    }
    ASSERT_TRUE(pass_all());
    std::multiset<std::string> busy;
    for (const auto* some : {&one, &other})
        for (const auto& thread : some->threads)
            if (some->weights.contains(thread.id.tid)) busy.insert(thread.allowed.to_list());
    EXPECT_EQ(busy, (std::multiset<std::string>{"0", "1", "2", "3"}));
}

/// Two processes of threads that use as much each; both in the first group.
std::vector<Pod> two_processes(World& world, const CpuSet& cpuset, int threads, Weight weight) {
    std::vector<Pod> pods;
    for (int pid = 100; pid < 300; pid += 100) {
        auto& one = pods.emplace_back(pod(world, pid, threads, cpuset));
        for (const auto& thread : one.threads)
            one.weights[thread.id.tid] = weight;
        const auto& cpus = world.placements.policies[0].together[0].cpus;
        const std::vector<Slot> only{{cpus, cpus}};
        (void)world.assignments.assign({.distribution = {"p0", 0, "", DistributionId::Kind::groups},
                                        .slots = only,
                                        .task = one.threads.front().id,
                                        .present = {}});
    }
    return pods;
}

TEST(Cpuset, AProcessChangesOverToAnotherGroupOnlyIfItHasThat) {
    for (const auto& [cpuset, expected] : std::map<CpuSet, std::set<unsigned>>{
             {CpuSet::range(0, 15), {0, 1}}, {CpuSet::range(0, 13), {0, 1}}, {CpuSet::range(0, 7), {0}}}) {
        World world({"match: {comm: app}\ntogether: node\nspread: cpu\nbind: cpu\n"}, test::without_smt(16));
        auto pods = two_processes(world, cpuset, 12, one_cpu * 3 / 10);
        std::set<unsigned> nodes;
        for (int round = 0; round < 5; ++round) {
            for (auto& one : pods)
                ASSERT_TRUE(pass(world, one)) << cpuset.to_list();
            redeal(world);
        }
        for (auto& one : pods) {
            ASSERT_TRUE(pass(world, one)) << cpuset.to_list();
            for (const auto& thread : one.threads)
                nodes.insert(thread.allowed.first() / 8);
        }
        for (const auto& one : pods)
            for (const auto& thread : one.threads)
                EXPECT_EQ(thread.allowed.first() / 8, one.threads.front().allowed.first() / 8);
        EXPECT_EQ(nodes, expected) << cpuset.to_list();
    }
}

TEST(Cpuset, TheThirdGroupIsTheSecondOfAProcessWhoseCpusetLacksTheSecond) {
    auto machine = test::without_smt(12);
    machine.topology.nodes.clear();
    for (unsigned node = 0; node < 3; ++node) {
        machine.topology.nodes.push_back({node, CpuSet::range(node * 4, node * 4 + 3), 1U << 30, {}});
        for (unsigned cpu = node * 4; cpu < node * 4 + 4; ++cpu)
            machine.topology.cpus[cpu].node = node;
    }
    World world({"match: {comm: app}\ntogether: node\nspread: cpu\nbind: cpu\n"}, std::move(machine));
    auto pods = two_processes(world, CpuSet::range(0, 3) | CpuSet::range(8, 11), 4, one_cpu / 2);
    for (int round = 0; round < 3; ++round) {
        for (auto& one : pods)
            ASSERT_TRUE(pass(world, one));
        redeal(world);
    }
    std::set<unsigned> nodes;
    for (auto& one : pods) {
        ASSERT_TRUE(pass(world, one));
        nodes.insert(one.threads.front().allowed.first() / 4);
    }
    EXPECT_EQ(nodes, (std::set<unsigned>{0, 2}))
        << "eight halves of a CPU on four CPUs are no reason to stay";
}

TEST(Cpuset, WhatIsMeasuredDoesNotDependOnWhichCpusetWasSeenFirst) {
    const auto moves = [](bool is_reversed) {
        World world({each_a_cpu}, test::without_smt(8));
        std::vector<Pod> pods{pod(world, 100, 6, CpuSet{0, 1, 2}), pod(world, 200, 6, CpuSet{1, 2, 3})};
        for (auto& one : pods)
            for (const auto& thread : one.threads)
                one.weights[thread.id.tid] = thread.id.tid % 3 == 0 ? one_cpu * 2 / 5 : one_cpu / 500;
        // The same tasks on the same CPUs, whoever came first.
        for (auto& one : pods)
            for (auto& thread : one.threads)
                thread.allowed = CpuSet{2};
        if (is_reversed) std::ranges::reverse(pods);
        const DistributionId id{"p0", 0, ""};
        for (auto& one : pods)
            for (auto& thread : one.threads) {
                const std::vector<Slot> only{{CpuSet{2}, CpuSet{2}}};
                (void)world.assignments.assign({.distribution = id,
                                                .slots = only,
                                                .task = thread.id,
                                                .present = {},
                                                .cpuset = &one.cpuset});
                world.assignments.weigh(id, thread.id, one.weights[thread.id.tid]);
            }
        Redeal redeal(world.placements, world.assignments);
        redeal.step([] { return false; });
        std::string text;
        for (const auto& move : redeal.moves())
            text += std::to_string(move.task.tid) + ">" + move.to.cpus.to_list() + " ";
        return text;
    };
    EXPECT_FALSE(moves(false).empty());
    EXPECT_EQ(moves(false), moves(true));
}

TEST(Cpuset, OneThatComesInThePlaceOfAnotherWhileTasksAreCollectedIsNotTakenForThat) {
    World world({each_a_cpu}, test::without_smt(16));
    auto old = pod(world, 1000, 300, CpuSet::range(0, 7));
    ASSERT_TRUE(pass(world, old));
    Redeal redeal(world.placements, world.assignments);
    for (int i = 0; i < 4; ++i)
        ASSERT_FALSE(redeal.step([] { return true; }));
    for (const auto& thread : old.threads)
        world.assignments.leave(thread.id);
    auto next = pod(world, 5000, 300, CpuSet::range(4, 11));
    for (const auto& thread : next.threads)
        next.weights[thread.id.tid] = one_cpu / 4;
    next.weights[5000] = next.weights[5008] = one_cpu; // somebody has a reason to move
    ASSERT_TRUE(pass(world, next));
    while (!redeal.step([] { return true; })) {
    }
    for (const auto& move : redeal.moves())
        if (move.task.tid >= 5000) {
            EXPECT_TRUE(next.cpuset.contains(move.to.cpus)) << move.to.cpus.to_list();
        }
}

TEST(Cpuset, AnAnswerSaysWhichOneCutsATaskUntilNoneDoes) {
    World world({each_a_cpu}, test::without_smt(8));
    auto& assignments = world.assignments;
    auto tasks = pod(world, 100, 3, CpuSet{0, 1});
    const auto cpuset = [&](int tid) {
        const auto seat = assignments.seats().find(test::thread(tid, "app").id);
        return seat == assignments.seats().end() ? "no seat" : assignments.cpuset_of(seat->second).to_list();
    };
    ASSERT_TRUE(pass(world, tasks));
    EXPECT_EQ(cpuset(100), "0-1");
    EXPECT_EQ(cpuset(102), "0-1");
    const auto& seats = assignments.seats();
    EXPECT_EQ(seats.find(tasks.threads[0].id)->second.cpuset, seats.find(tasks.threads[2].id)->second.cpuset)
        << "it is kept once";
    tasks.cpuset = CpuSet{0, 3};
    ASSERT_TRUE(pass(world, tasks));
    EXPECT_EQ(cpuset(100), "0,3");
    assignments.leave(tasks.threads[1].id);
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

// SPDX-License-Identifier: Apache-2.0
// One load for the whole machine: what several policies put on its cores, and what a re-deal makes of it.
#include "planner/redeal.hpp"
#include "world.hpp"

#include <map>
#include <set>

namespace affinityd::planner {
namespace {

using test::World;

std::vector<std::string> policies_saying(unsigned count, const std::string& text) {
    std::vector<std::string> texts;
    for (unsigned i = 0; i < count; ++i)
        texts.push_back("match: {comm: app" + std::to_string(i) + "}\n" + text);
    return texts;
}

/// A process of one thread under policy `policy`; its CPUs.
CpuSet start(World& world, int pid, std::size_t policy, const std::string& comm = "app") {
    auto task = test::thread(pid, comm, world.machine.topology.online);
    world.settle(task, policy);
    return task.allowed;
}

Redeal redealt(World& world) {
    Redeal redeal(world.placements, world.assignments);
    EXPECT_TRUE(redeal.step([] { return false; }));
    for (const auto& move : redeal.moves())
        world.assignments.move(move.task, move.table, move.from, move.to);
    return redeal;
}

TEST(Balance, FourProgramsUnderFourPoliciesHaveACoreEachOnBothSockets) {
    for (const std::string bind : {"core", "cpu"}) {
        World world(policies_saying(4, "bind: " + bind + "\n"), test::plain());
        std::set<unsigned> cores, sockets;
        for (int i = 0; i < 4; ++i) {
            const auto cpus = start(world, 100 + i, static_cast<std::size_t>(i));
            cores.insert(world.machine.topology.core_of(cpus.first()).first());
            sockets.insert(cpus.first() / 4);
        }
        EXPECT_EQ(cores.size(), 4U) << bind;
        EXPECT_EQ(sockets.size(), 2U) << bind;
    }
}

TEST(Balance, ProgramsUnderPoliciesOfDefaultsTakeTheCacheGroupsInTurn) {
    World world(policies_saying(4, ""), test::plain());
    std::map<std::string, int> groups;
    for (int i = 0; i < 4; ++i)
        ++groups[start(world, 100 + i, static_cast<std::size_t>(i)).to_list()];
    EXPECT_EQ(groups, (std::map<std::string, int>{{"0-3", 2}, {"4-7", 2}}));
}

TEST(Balance, TenThreadsOfTwoHundredPoliciesSpreadEvenly) {
    World world(policies_saying(200, "spread: core\nbind: core\n"), test::plain());
    std::map<unsigned, int> cores;
    for (int policy = 0; policy < 200; ++policy)
        for (int i = 0; i < 10; ++i)
            ++cores[start(world, 1000 + policy * 10 + i, static_cast<std::size_t>(policy)).first()];
    ASSERT_EQ(cores.size(), 4U);
    for (const auto& [core, tasks] : cores)
        EXPECT_NEAR(tasks, 500, 50) << core;
}

TEST(Balance, ThreadsOfOnePolicyStayInOneCacheGroupWhileItHasRoom) {
    World world(
        {"match: {comm: a}\nspread: core\nbind: cpu\n", "match: {comm: b}\nspread: core\nbind: cpu\n"},
        test::without_smt(16));
    for (int policy = 0; policy < 2; ++policy) {
        CpuSet cpus;
        for (int i = 0; i < 4; ++i)
            cpus |= start(world, 100 + policy * 10 + i, static_cast<std::size_t>(policy));
        EXPECT_EQ(cpus.to_list(), policy == 0 ? "0-3" : "8-11");
    }
}

TEST(Balance, ThreadRulesOfOnePolicyDoNotCollide) {
    World world({"match: {comm: a}\naffinity: process\nspread: core\nbind: cpu\nthreads:\n"
                 "  - {name: main, cpus: \"0\", bind: cpu}\n"
                 "  - {name: \"io-*\", cpus: \"0-3\", spread: cpu, bind: cpu}\n"
                 "  - {name: \"net-*\", cpus: \"0-3\", spread: cpu, bind: cpu}\n"},
                test::without_smt(16));
    std::multiset<std::string> cpus;
    for (const char* name : {"main", "io-1", "net-1", "net-2"})
        cpus.insert(start(world, 100 + static_cast<int>(cpus.size()), 0, name).to_list());
    EXPECT_EQ(cpus, (std::multiset<std::string>{"0", "1", "2", "3"}));
}

TEST(Balance, ATaskStaysOffTheCoresThatTakeInterrupts) {
    auto machine = test::plain();
    test::add_nic(machine, "eth0", 0, 2, 40);
    World world({"match: {comm: a}\naffinity: irq\nnics: [eth0]\n", "match: {comm: b}\nbind: core\n"},
                machine);
    EXPECT_EQ(start(world, 100, 1).to_list(), "4-5");
    EXPECT_EQ(start(world, 101, 1).to_list(), "6-7");
}

TEST(Balance, SeparatedInterruptsOfSeveralInterfacesAreSpread) {
    auto machine = test::without_smt(16);
    std::vector<std::string> texts;
    for (unsigned i = 0; i < 6; ++i) {
        const auto name = "eth" + std::to_string(i);
        test::add_nic(machine, name, 0, 1, 40 + i);
        machine.nics.back().local_cpus = CpuSet::range(0, 7);
        texts.push_back("match: {comm: app" + std::to_string(i) +
                        "}\naffinity: full\nseparate: true\ncpus: 0-7\nnics: [" + name + "]\n");
    }
    World world(texts, machine);
    std::set<std::string> cpus;
    for (const auto& target : world.placements.queues)
        if (std::holds_alternative<IrqMask>(target.subject)) cpus.insert(target.wanted.to_string());
    EXPECT_GE(cpus.size(), 4U);
}

TEST(Balance, AnIdleHelperDoesNotPushAWorkerOffACore) {
    World world(policies_saying(2, "spread: cpu\nbind: cpu\ncpus: 0,2\n"), test::plain());
    const auto helper = start(world, 100, 0);
    world.assignments.weigh({"p0", 0, ""}, {100, 1000}, one_cpu / 50);
    const auto worker = start(world, 101, 1);
    EXPECT_EQ(helper.to_list(), "0");
    EXPECT_EQ(worker.to_list(), "0") << "alike: the first in the order";
    EXPECT_EQ(start(world, 102, 1).to_list(), "2");
}

TEST(Redeal, BusyTasksOnOneCoreAreTakenApart) {
    World world(policies_saying(4, "spread: cpu\nbind: cpu\ncpus: 0,2,4,6\n"), test::plain());
    // Two helpers came first; two workers then shared a core with one each.
    for (int i = 0; i < 8; ++i)
        start(world, 100 + i, static_cast<std::size_t>(i % 4));
    // Those on CPUs 0 and 4 are busy.
    for (int i = 0; i < 8; ++i)
        world.assignments.weigh({"p" + std::to_string(i % 4), 0, ""},
                                {100 + i, (100U + static_cast<unsigned>(i)) * 10},
                                i % 2 == 0 ? one_cpu : one_cpu / 50);
    const auto redeal = redealt(world);
    EXPECT_LT(redeal.goodness().balance(), 0.6);
    EXPECT_LE(redeal.moves().size(), 2U);
    EXPECT_GT(redealt(world).goodness().balance(), 0.95);
}

TEST(Redeal, NobodyMovesForASmallGain) {
    World world(policies_saying(2, "spread: cpu\nbind: cpu\ncpus: 0,2\n"), test::plain());
    for (int i = 0; i < 4; ++i)
        start(world, 100 + i, static_cast<std::size_t>(i % 2));
    const std::map<int, Weight> weights{{100, 500}, {101, 420}, {102, 480}, {103, 490}};
    for (const auto& [pid, weight] : weights)
        world.assignments.weigh({"p" + std::to_string(pid % 2), 0, ""},
                                {pid, static_cast<unsigned>(pid) * 10U}, weight * 1000);
    EXPECT_TRUE(redealt(world).moves().empty());
}

TEST(Redeal, ATaskTakesTheSlotOfAnotherWhichGoesOn) {
    // One may be on 0 and 2, the other on 2 and 4, a third on 0 only.
    World world({"match: {comm: a}\ncpus: 0,2\nspread: cpu\nbind: cpu\n",
                 "match: {comm: b}\ncpus: 2,4\nspread: cpu\nbind: cpu\n",
                 "match: {comm: c}\ncpus: \"0\"\nspread: cpu\nbind: cpu\n"},
                test::plain());
    EXPECT_EQ(start(world, 100, 0).to_list(), "0");
    EXPECT_EQ(start(world, 101, 1).to_list(), "4") << "the other node has no load";
    world.assignments.leave({101, 1010});
    auto other = test::thread(101, "b", CpuSet{2});
    world.settle(other, 1);
    EXPECT_EQ(other.allowed.to_list(), "2") << "it was there already";
    EXPECT_EQ(start(world, 102, 2).to_list(), "0");
    EXPECT_EQ(redealt(world).moves().size(), 2U);
    EXPECT_EQ(redealt(world).goodness().busiest, one_cpu);
}

TEST(Redeal, AProcessLeavesItsGroupAsAWhole) {
    World world({"match: {comm: a}\ntogether: node\nspread: cpu\nbind: cpu\n"}, test::without_smt(16));
    // Four processes of eight threads each; the two on the first node turn out to be the busy ones.
    std::vector<std::vector<inventory::Thread>> processes;
    const auto plan_all = [&] {
        for (auto& threads : processes)
            for (auto& task : threads)
                world.apply(task,
                            plan_thread(world.planning(), {.id = threads.front().id, .policy = 0}, {task}));
    };
    for (int i = 0; i < 4; ++i) {
        auto& threads = processes.emplace_back();
        for (int k = 0; k < 8; ++k)
            threads.push_back(test::thread(100 + i * 10 + k, "a", world.machine.topology.online));
        plan_all();
    }
    const auto node_of = [](const auto& task) { return task.allowed.first() / 8; };
    const unsigned busy_node = node_of(processes.front().front());
    for (const auto& threads : processes)
        for (const auto& task : threads)
            world.assignments.weigh(
                {"p0", 0, std::to_string(node_of(task) * 8), DistributionId::Kind::in_group}, task.id,
                node_of(task) == busy_node ? one_cpu * 9 / 10 : one_cpu / 50);
    ASSERT_NEAR(redealt(world).goodness().balance(), 0.5, 0.05);
    plan_all();
    EXPECT_GT(redealt(world).goodness().balance(), 0.9);
    for (const auto& threads : processes)
        for (const auto& task : threads)
            EXPECT_EQ(node_of(task), node_of(threads.front())) << "they stay together";
    Weight sum = 0;
    for (const unsigned cpu : world.machine.topology.online)
        sum += world.assignments.load().on_cpu(cpu);
    EXPECT_EQ(sum, 16 * (one_cpu * 9 / 10 + one_cpu / 50)) << "each counts once";
}

TEST(Redeal, TasksThatACpusetCutsStayWhereTheyAre) {
    World world({"match: {comm: a}\nspread: cpu\nbind: cpu\n"}, test::plain());
    const CpuSet cpuset{0, 1};
    for (int pid = 100; pid < 104; ++pid) {
        auto task = test::thread(pid, "a", cpuset);
        const auto plan =
            plan_thread(world.planning(), {.id = task.id, .policy = 0, .cpuset = &cpuset}, {task});
        world.apply(task, plan);
        EXPECT_TRUE(cpuset.contains(task.allowed));
    }
    EXPECT_TRUE(redealt(world).moves().empty());
}

TEST(Goodness, SaysWhatIsWrong) {
    Goodness goodness{.busiest = 2 * one_cpu, .least = one_cpu, .off_node = 3, .paired = 1, .moves = 2};
    EXPECT_EQ(to_string(goodness),
              "the busiest core has 2.00 CPUs of work where 1.00 would do; 3 tasks are not on "
              "the node of their interface");
    goodness.off_node = 0;
    goodness.shared = {.policies = {"redis", "nginx"}, .core = 2, .free = 3};
    EXPECT_EQ(to_string(goodness), "nginx and redis share the core of CPU 2 while that of CPU 3 is idle");
    EXPECT_EQ(to_string(Goodness{}), "");
    EXPECT_EQ(Goodness{}.balance(), 1.0);
}

Weight least_busiest(std::vector<Confined> work, const CpuLoad& fixed) {
    LeastBusiest least(std::move(work), fixed);
    while (!least.step([] { return true; })) {
    }
    return least.value();
}

TEST(Goodness, TheLeastIsFoundByCounting) {
    const CpuLoad none{test::plain().topology};
    EXPECT_EQ(least_busiest({{CpuSet::range(0, 7), {4, 3}, 7}}, none), 4) << "the largest piece";
    EXPECT_EQ(least_busiest({{CpuSet::range(0, 7), {2, 2, 2, 2, 2}, 10}}, none), 4) << "five on four cores";
    EXPECT_EQ(least_busiest({{CpuSet::range(0, 7), {1}, 1}, {CpuSet{0, 1}, {2, 2}, 4}}, none), 4)
        << "confined to one core";
    CpuLoad busy = none;
    busy.add({0}, 9);
    EXPECT_EQ(least_busiest({}, busy), 9) << "what cannot be moved";
    EXPECT_EQ(least_busiest({{CpuSet::range(0, 7), std::vector<Weight>(9, one_cpu), 9 * one_cpu}}, none),
              3 * one_cpu)
        << "nine that are alike";
    std::vector<Weight> unlike;
    for (Weight i = 0; i < 9; ++i)
        unlike.push_back(one_cpu - i * 100);
    EXPECT_NEAR(static_cast<double>(least_busiest({{CpuSet::range(0, 7), unlike, 0}}, none)), 3.0 * one_cpu,
                3.0 * one_cpu / 200)
        << "nearly";
}

} // namespace
} // namespace affinityd::planner

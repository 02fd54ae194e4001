// SPDX-License-Identifier: Apache-2.0
// The load of the whole machine: what several policies put on its cores, and who leaves a crowded core.
#include "planner/crowding.hpp"
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
    world.assignments.weigh(*world.assignments.number({"p0", 0, ""}), {100, 1000}, one_cpu / 50);
    const auto worker = start(world, 101, 1);
    EXPECT_EQ(helper.to_list(), "0");
    EXPECT_EQ(worker.to_list(), "0") << "alike: the first in the order";
    EXPECT_EQ(start(world, 102, 1).to_list(), "2");
}

TEST(Balance, BusyProgramsOfOneCacheGroupGetACoreEachWhenTheirPoliciesBindThemToCores) {
    World world(policies_saying(4, "cpus: 0-3,4-7\n"), test::plain());
    std::vector<inventory::Thread> tasks;
    for (int i = 0; i < 4; ++i) {
        const auto policy = static_cast<std::size_t>(i);
        world.settle(tasks.emplace_back(test::thread(100 + i, "app", world.machine.topology.online)), policy);
        world.assignments.weigh(*world.assignments.number({"p" + std::to_string(i), 0, ""}), tasks.back().id,
                                one_cpu);
    }
    world.reload(policies_saying(4, "cpus: 0-3,4-7\nbind: core\n"));
    std::set<std::string> cores;
    for (std::size_t i = 0; i < 4; ++i) {
        world.settle(tasks[i], i);
        cores.insert(tasks[i].allowed.to_list());
    }
    EXPECT_EQ(cores, (std::set<std::string>{"0-1", "2-3", "4-5", "6-7"}));
}

/// A task that weighs as much, in hundredths of a CPU, on this CPU; its policy may use `cpus`.
struct Sitter {
    unsigned cpu;
    int weight;
    std::string cpus;
    std::string policy = ""; ///< "": one of its own
};

struct CrowdCase {
    const char* name;
    std::vector<Sitter> tasks;
    std::string expected; ///< "task>CPU" of each that is to move, in order
};

const std::vector<CrowdCase> crowd_cases{
    {"two busy ones on one core: one goes to the first free core", {{0, 100, "0-7"}, {0, 90, "0-7"}}, "1>2"},
    {"the lightest goes", {{0, 90, "0-7"}, {0, 30, "0-7"}, {0, 60, "0-7"}}, "1>2 2>4"},
    {"siblings share a core", {{0, 100, "0-7"}, {1, 100, "0-7"}}, "0>2"},
    {"idle ones stay", {{0, 100, "0-7"}, {0, 1, "0-7"}, {0, 1, "0-7"}}, ""},
    {"one alone stays", {{0, 100, "0-7"}}, ""},
    {"as busy everywhere",
     {{0, 100, "0-7"},
      {0, 100, "0-7"},
      {2, 100, "0-7"},
      {2, 100, "0-7"},
      {4, 100, "0-7"},
      {4, 100, "0-7"},
      {6, 100, "0-7"},
      {6, 100, "0-7"}},
     ""},
    {"a small gain", {{0, 50, "0,2"}, {0, 42, "0,2"}, {2, 48, "0,2"}, {2, 30, "0,2"}}, ""},
    {"only where its policy allows", {{0, 100, "0"}, {0, 100, "0,4"}}, "1>4"},
    {"none may leave", {{0, 100, "0"}, {0, 100, "0"}}, ""},
    {"several tasks of a policy",
     {{0, 100, "0-7", "a"}, {0, 100, "0-7", "a"}, {0, 100, "0-7", "b"}, {0, 100, "0-7", "b"}},
     "0>2 1>4 2>6"},
    {"four of four policies",
     {{0, 90, "0-7"}, {0, 91, "0-7"}, {0, 92, "0-7"}, {0, 93, "0-7"}},
     "0>2 1>4 2>6"},
};

TEST(Crowdings, TheLightestTaskOfABusyCoreGoesToTheLeastLoadedThatItsPolicyAllows) {
    for (const auto& one : crowd_cases) {
        std::vector<std::string> texts;
        std::map<std::string, std::size_t> policies;
        std::vector<std::size_t> of;
        for (const auto& task : one.tasks) {
            const auto name = task.policy.empty() ? std::to_string(of.size()) : task.policy;
            const auto [at, is_new] = policies.try_emplace(name, texts.size());
            if (is_new)
                texts.push_back("match: {comm: a}\nspread: cpu\nbind: cpu\ncpus: \"" + task.cpus + "\"\n");
            of.push_back(at->second);
        }
        World world(texts, test::plain());
        world.assignments.use(world.placements.load);
        for (std::size_t i = 0; i < one.tasks.size(); ++i) {
            const TaskId task{static_cast<int>(i), 7};
            const DistributionId id{"p" + std::to_string(of[i]), 0, ""};
            const std::vector<Slot> only{{CpuSet{one.tasks[i].cpu}, CpuSet{one.tasks[i].cpu}}};
            (void)world.assignments.assign({.distribution = id, .slots = only, .task = task, .present = {}});
            world.assignments.weigh(*world.assignments.number(id), task,
                                    one.tasks[i].weight * (one_cpu / 100));
        }
        std::string moves;
        for (const auto& move : crowdings(world.placements, world.assignments))
            moves +=
                (moves.empty() ? "" : " ") + std::to_string(move.task.tid) + ">" + move.to.cpus.to_list();
        EXPECT_EQ(moves, one.expected) << one.name;
    }
}

TEST(Crowdings, NameTheTasksAndTheCores) {
    const Crowding crowding{.core = 0,
                            .free = 2,
                            .load = 2 * one_cpu,
                            .free_load = 0,
                            .task = {10, 1},
                            .policy = "web",
                            .mate = {11, 1},
                            .mate_policy = "db",
                            .to = {}};
    EXPECT_EQ(to_string(crowding), "db and web share the core of CPU 0 while that of CPU 2 is idle");
}

TEST(Balance, ACoreIsRelievedAfterThreeLooksRunning) {
    Relief relief;
    const std::vector<Crowding> crowded{
        {.core = 4, .task = {1, 1}, .policy = "p", .mate = {}, .mate_policy = {}, .to = {}}};
    EXPECT_TRUE(relief.look(crowded).empty());
    EXPECT_TRUE(relief.look(crowded).empty());
    EXPECT_TRUE(relief.look({}).empty());
    EXPECT_TRUE(relief.look(crowded).empty());
    EXPECT_TRUE(relief.look(crowded).empty());
    EXPECT_EQ(relief.look(crowded).size(), 1U);
}

TEST(Balance, ACoreWithTooMuchWorkIsRelievedAtOnceWhileAnotherIsIdle) {
    Crowding crowding{.core = 4,
                      .load = 2 * one_cpu,
                      .task = {1, 1},
                      .policy = "p",
                      .mate = {},
                      .mate_policy = {},
                      .to = {}};
    EXPECT_EQ(Relief().look({crowding}).size(), 1U);
    crowding.free_load = one_cpu / 2;
    EXPECT_TRUE(Relief().look({crowding}).empty());
}

} // namespace
} // namespace affinityd::planner

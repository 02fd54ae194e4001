// SPDX-License-Identifier: Apache-2.0
// The load of the machine when slots get other CPUs, cpusets cut them, and CPUs go offline.
#include "planner/assignments.hpp"
#include "world.hpp"

#include <set>

namespace affinityd::planner {
namespace {

using test::World;

const DistributionId one_distribution{"p", 0, ""};

std::vector<Slot> one_slot(const CpuSet& cpus) { return {{cpus, cpus}}; }

void assign_all(Assignments& assignments, int tasks, const std::vector<Slot>& slots) {
    for (int tid = 1; tid <= tasks; ++tid)
        (void)assignments.assign(
            {.distribution = one_distribution, .slots = slots, .task = {tid, 1}, .present = {}});
}

std::vector<Weight> loads(const Assignments& assignments) {
    std::vector<Weight> loads;
    for (unsigned cpu = 0; cpu < 8; ++cpu)
        loads.push_back(assignments.load().on_cpu(cpu));
    return loads;
}

Assignments on_plain() {
    Assignments assignments;
    assignments.use(std::make_shared<const CpuLoad>(CpuLoad(test::plain().topology)));
    return assignments;
}

TEST(Load, TasksOfASlotThatGrowsCountOnAllItsCpusHoweverManyTheyAre) {
    for (const int tasks : {1, 2, 5}) {
        auto assignments = on_plain();
        assign_all(assignments, tasks, one_slot({0}));
        EXPECT_EQ(assignments.load().on_cpu(0), tasks * one_cpu);
        assign_all(assignments, tasks, one_slot(CpuSet::range(0, 3)));
        const Weight each = tasks * one_cpu / 4;
        EXPECT_EQ(loads(assignments), (std::vector<Weight>{each, each, each, each, 0, 0, 0, 0})) << tasks;
        assign_all(assignments, tasks, one_slot({0, 1}));
        EXPECT_EQ(loads(assignments), (std::vector<Weight>{2 * each, 2 * each, 0, 0, 0, 0, 0, 0})) << tasks;
        for (int tid = 1; tid <= tasks; ++tid)
            assignments.drop({tid, 1});
        EXPECT_EQ(loads(assignments), std::vector<Weight>(8)) << tasks;
    }
}

TEST(Load, TasksCountOnTheCpusThatTheirPolicyHasAfterAReload) {
    World world({"match: {comm: app}\ncpus: \"0\"\n"}, test::plain());
    std::vector<inventory::Thread> tasks;
    for (int tid = 1; tid < 5; ++tid)
        world.settle(tasks.emplace_back(test::thread(tid, "app")));
    world.reload({"match: {comm: app}\ncpus: 0-3\n"});
    for (auto& task : tasks)
        EXPECT_EQ(world.settle(task), "0-3");
    EXPECT_EQ(world.assignments.load().on_cpu(0), one_cpu);
    EXPECT_EQ(world.assignments.load().on_cpu(3), one_cpu);
}

TEST(Load, TasksCountOnCpusThatCameBack) {
    World world({"match: {comm: app}\ncpus: 0-3\n"}, test::plain());
    const auto whole = world.machine.topology;
    std::vector<inventory::Thread> tasks{test::thread(1, "app"), test::thread(2, "app")};
    for (const bool is_back : {false, true}) {
        auto& topology = world.machine.topology;
        topology = whole;
        if (!is_back) {
            topology.online -= CpuSet::range(1, 3);
            std::erase_if(topology.cpus, [](const auto& cpu) { return cpu.id >= 1 && cpu.id <= 3; });
        }
        world.placements = compile(world.set, world.machine, {});
        for (auto& task : tasks)
            EXPECT_EQ(world.settle(task), is_back ? "0-3" : "0");
        EXPECT_EQ(world.assignments.load().on_cpu(0), is_back ? one_cpu / 2 : 2 * one_cpu);
    }
}

TEST(Load, TasksThatACpusetCutsCountOnTheirCpusAndTheOthersOnAll) {
    for (const bool cut_first : {true, false}) {
        World world({"match: {comm: app}\ncpus: 0-3\n"}, test::plain());
        const std::vector<CpuSet> cpusets{{0}, {0, 1}};
        const auto start_cut = [&] {
            for (int i = 0; i < 2; ++i) {
                auto task = test::thread(1 + i, "app");
                const auto& cpuset = cpusets[static_cast<std::size_t>(i)];
                world.apply(task, plan_thread(world.planning(),
                                              {.id = task.id, .policy = 0, .cpuset = &cpuset}, {task}));
                EXPECT_EQ(task.allowed, cpuset);
            }
        };
        if (cut_first) start_cut();
        for (int tid = 10; tid < 18; ++tid) {
            auto task = test::thread(tid, "app");
            EXPECT_EQ(world.settle(task), "0-3");
        }
        if (!cut_first) start_cut();
        EXPECT_EQ(loads(world.assignments), (std::vector<Weight>{7 * one_cpu / 2, 5 * one_cpu / 2,
                                                                 2 * one_cpu, 2 * one_cpu, 0, 0, 0, 0}));
        world.assignments.use(std::make_shared<const CpuLoad>(CpuLoad(world.machine.topology)));
        EXPECT_EQ(world.assignments.load().on_cpu(0), 7 * one_cpu / 2) << "counted anew, the same";
    }
}

TEST(Load, TheLanesOfAnInterfaceCountWhateverItsName) {
    for (const std::string name : {"eth7", "together", "*", "8"}) {
        auto machine = test::plain();
        test::add_nic(machine, name, 0, 4, 100);
        const auto nics = name == "*" ? "\"\\\\*\"" : "\"" + name + "\"";
        World world({"match: {comm: app}\naffinity: full\nnics: [" + nics + "]\nspread: core\nbind: core\n"},
                    machine);
        std::set<std::string> masks;
        for (int tid = 1; tid < 5; ++tid) {
            auto task = test::thread(tid, "app");
            const auto plan = world.plan(task);
            ASSERT_TRUE(plan.action) << name;
            const auto why = plan.action->reason.text;
            EXPECT_NE(why.find("the lane of " + name + ":"), std::string::npos) << why;
            masks.insert(world.settle(task));
        }
        EXPECT_EQ(masks.size(), 4U) << name << ": each has a core of its own";
        Weight tasks = 0;
        for (unsigned cpu = 0; cpu < 8; ++cpu)
            tasks += world.assignments.load().on_cpu(cpu) - world.placements.load->on_cpu(cpu);
        EXPECT_EQ(tasks, 4 * one_cpu) << name;
    }
}

TEST(Load, ACpuThatIsOfflineIsACoreOfItsOwnAndHasNoLoad) {
    auto machine = test::plain();
    machine.topology.online -= CpuSet{5};
    CpuLoad load(machine.topology);
    EXPECT_EQ(load.core_of(5), 5U);
    load.add({5}, one_cpu);
    EXPECT_EQ(load.on_core(0), 0);
    EXPECT_EQ(load.busiest(), 0);
    CpuLoad::Around around;
    load.change({4, 5}, 0, one_cpu, &around);
    EXPECT_EQ(load.on_core(0), 0);
    EXPECT_EQ(load.on_core(4), one_cpu / 2);
    EXPECT_EQ(load.on_cpu(5), 0);
    load.change({4, 5}, one_cpu, 0, &around);
    EXPECT_EQ(load.busiest(), 0) << "nothing is left over";
}

TEST(Load, WhoseCpuWentOfflineCountsAgainWhenItIsBack) {
    auto machine = test::plain();
    const auto all = std::make_shared<const CpuLoad>(CpuLoad(machine.topology));
    machine.topology.online -= CpuSet{5};
    const auto fewer = std::make_shared<const CpuLoad>(CpuLoad(machine.topology));
    Assignments assignments;
    assignments.use(all);
    assign_all(assignments, 3, one_slot({5}));
    assignments.use(fewer);
    EXPECT_EQ(assignments.load().on_core(0), 0);
    EXPECT_EQ(assignments.load().busiest(), 0);
    assignments.drop({1, 1});
    assignments.use(all);
    EXPECT_EQ(assignments.load().on_cpu(5), 2 * one_cpu);
}

} // namespace
} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
// Tasks of several policies share the machine by what they use.
#include "app/balancer.hpp"
#include "app/weighing.hpp"
#include "host/boot_clock.hpp"
#include "simulated.hpp"

#include <set>

namespace affinityd::app {
namespace {

using planner::Weight;
using test::Instance;
using test::Machine;

/// Since the birth of a simulated process.
std::chrono::nanoseconds lifetime() {
    return std::chrono::nanoseconds(
        std::chrono::seconds((host::ticks_since_boot() - 100) / host::ticks_a_second()));
}

constexpr auto two_places = "match: {comm: app}\ncpus: 0,2\nspread: cpu\nbind: cpu\n";

/// Four processes on CPUs 0 and 2, two on each; those of `busy` use all of a CPU, the others next to nothing.
struct FourProcesses {
    Machine machine;
    explicit FourProcesses(const std::set<int>& busy, const std::string& policy = two_places) {
        machine.policy("app", policy);
        for (int pid = 100; pid < 104; ++pid) {
            machine.process(pid, "app");
            machine.wanted(pid, pid, lifetime() / (busy.contains(pid) ? 1 : 1000));
        }
    }
    [[nodiscard]] std::string mask(int pid) const { return machine.allowed(pid, pid); }
};

TEST(Balance, BusyProcessesThatShareACpuAreTakenApartWithTheFirstPass) {
    const FourProcesses four({100, 102});
    Instance daemon(four.machine);
    ASSERT_TRUE(daemon.manager().start());
    daemon.pass();
    const auto quiet = four.mask(101);
    EXPECT_EQ(four.mask(100), four.mask(102)) << "nothing was known of them";
    EXPECT_NE(four.mask(100), quiet);
    daemon.pass();
    EXPECT_NE(four.mask(100), four.mask(102));
    EXPECT_EQ(four.mask(101), quiet) << "who may stay, stays";
    EXPECT_EQ(four.mask(103), quiet);
    const auto balance = daemon.status()["balance"];
    EXPECT_GT(balance["quotient"], 0.95) << "as it is now";
    EXPECT_EQ(balance["moved"], 1);
}

TEST(Balance, WhatIsBalancedStaysWhereItIs) {
    const FourProcesses four({100, 101});
    Instance daemon(four.machine);
    ASSERT_TRUE(daemon.manager().start());
    daemon.pass();
    const auto even = four.mask(100), odd = four.mask(101);
    EXPECT_NE(even, odd);
    daemon.pass();
    for (int pid = 100; pid < 104; ++pid)
        EXPECT_EQ(four.mask(pid), pid % 2 == 0 ? even : odd) << pid;
    EXPECT_GT(daemon.status()["balance"]["quotient"], 0.95);
    EXPECT_EQ(daemon.status()["balance"]["moved"], 0);
}

TEST(Balance, SlotsAreDealtAnewNotMoreThanOnceInTheInterval) {
    const FourProcesses four({100, 101});
    Instance daemon(four.machine);
    ASSERT_TRUE(daemon.manager().start());
    daemon.pass();
    for (int pid = 100; pid < 104; ++pid)
        four.machine.wanted(pid, pid, lifetime() * (pid % 2 == 0 ? 3 : 1));
    const auto even = four.mask(100);
    daemon.pass();
    daemon.pass();
    EXPECT_EQ(four.mask(100), even);
    EXPECT_EQ(four.mask(102), even);
}

void add_app_with_io_threads(Machine& machine) {
    machine.policy("app", std::string(two_places) +
                              "threads:\n  - {name: \"io*\", cpus: \"1,3\", spread: cpu, bind: cpu}\n");
    machine.process(100, "app");
    machine.thread(100, 101, "io1");
    machine.thread(100, 102, "io2");
}

TEST(Balance, AProcessCountsByAllItsThreadsAndARuleThatItLeftCountsNoMore) {
    Machine machine;
    add_app_with_io_threads(machine);
    Instance daemon(machine);
    ASSERT_TRUE(daemon.manager().start());
    daemon.pass();
    const auto& load = daemon.tasks().placer().assignments().load();
    EXPECT_EQ(load.on_cpu(1) + load.on_cpu(3), 2 * planner::one_cpu);
    machine.thread(100, 102, "other");
    daemon.manager().tasks().thread_renamed(100, 102, "other");
    daemon.finish();
    const auto sum = [&] { return load.on_cpu(0) + load.on_cpu(1) + load.on_cpu(2) + load.on_cpu(3); };
    EXPECT_EQ(sum(), 4 * planner::one_cpu) << "until it is weighed";
    const auto root = host::Root::open(machine.path());
    Weighing weighing(*root, daemon.tasks().table(), daemon.tasks().placer().assignments(), std::nullopt);
    EXPECT_TRUE(weighing.step([] { return false; }));
    EXPECT_EQ(sum(), 3 * planner::one_cpu);
    EXPECT_EQ(load.on_cpu(1) + load.on_cpu(3), planner::one_cpu);
}

TEST(Balance, AThreadThatGetsAnotherRuleWhileItsProcessIsWeighedKeepsItsNewSlot) {
    Machine machine;
    add_app_with_io_threads(machine);
    Instance daemon(machine);
    ASSERT_TRUE(daemon.manager().start());
    daemon.pass();
    const auto& load = daemon.tasks().placer().assignments().load();
    EXPECT_EQ(load.on_cpu(0) + load.on_cpu(2), planner::one_cpu);
    const auto root = host::Root::open(machine.path());
    Weighing weighing(*root, daemon.tasks().table(), daemon.tasks().placer().assignments(), std::nullopt);
    for (int slices = 0; slices < 2; ++slices)
        ASSERT_FALSE(weighing.step([] { return true; })) << "a thread each";
    machine.thread(100, 101, "other");
    daemon.manager().tasks().thread_renamed(100, 101, "other");
    daemon.finish();
    while (!weighing.step([] { return true; })) {
    }
    EXPECT_EQ(load.on_cpu(0) + load.on_cpu(2), 2 * planner::one_cpu);
}

TEST(Balance, WhatAThreadUsedSinceItWasLastWeighedGoesIntoItsAverage) {
    FourProcesses four({100, 101, 102, 103});
    Instance daemon(four.machine);
    ASSERT_TRUE(daemon.manager().start());
    daemon.pass();
    const auto& load = daemon.tasks().placer().assignments().load();
    EXPECT_NEAR(static_cast<double>(load.busiest()), 2.0 * planner::one_cpu, planner::one_cpu / 100.0);
    for (int pid = 100; pid < 104; ++pid)
        four.machine.wanted(pid, pid, lifetime() + std::chrono::seconds(5));
    const auto root = host::Root::open(four.machine.path());
    Weighing weighing(*root, daemon.tasks().table(), daemon.tasks().placer().assignments(),
                      Weighing::Clock::now() - std::chrono::seconds(100));
    EXPECT_TRUE(weighing.step([] { return false; }));
    // Two of them, each on average of a whole CPU so far and a twentieth since.
    EXPECT_NEAR(static_cast<double>(load.busiest()), 1.05 * planner::one_cpu, planner::one_cpu / 20.0);
}

TEST(Balance, WhoHardlyRunsWeighsLittleHoweverLongItWaits) {
    const FourProcesses four({100, 101, 102, 103});
    for (const int pid : {102, 103}) // behind a busy neighbor
        four.machine.tree().file(fmt::format("proc/{0}/task/{0}/schedstat", pid),
                                 fmt::format("{} {} 7\n", lifetime().count() / 1000, lifetime().count() / 2));
    Instance daemon(four.machine);
    ASSERT_TRUE(daemon.manager().start());
    daemon.pass();
    daemon.pass();
    EXPECT_NE(four.mask(100), four.mask(101)) << "the two that work";
    EXPECT_LT(daemon.tasks().placer().assignments().load().busiest(), planner::one_cpu * 11 / 10);
}

TEST(Balance, WhomSomebodyElseMovedAwayForGoodCountsNoMoreWhereItWas) {
    FourProcesses four({100, 101, 102, 103}, std::string(two_places) + "drift: yield\n");
    Instance daemon(four.machine);
    ASSERT_TRUE(daemon.manager().start());
    daemon.pass();
    const auto& load = daemon.tasks().placer().assignments().load();
    const auto sum = [&] { return load.on_cpu(0) + load.on_cpu(2); };
    EXPECT_NEAR(static_cast<double>(sum()), 4.0 * planner::one_cpu, planner::one_cpu / 10.0);
    auto& machine = four.machine;
    machine.process(100, "app", "1");
    daemon.pass();
    ASSERT_EQ(four.mask(100), "1");
    const auto root = host::Root::open(machine.path());
    for (int round = 1; round <= 3; ++round) {
        for (int pid = 100; pid < 104; ++pid)
            machine.wanted(pid, pid, lifetime() + round * std::chrono::seconds(100));
        Weighing weighing(*root, daemon.tasks().table(), daemon.tasks().placer().assignments(),
                          Weighing::Clock::now() - std::chrono::seconds(100));
        EXPECT_TRUE(weighing.step([] { return false; }));
    }
    EXPECT_NEAR(static_cast<double>(sum()), 3.0 * planner::one_cpu, planner::one_cpu / 3.0) << "on average";
}

/// What is on the CPUs of the machine.
Weight load_of_all(Instance& daemon) {
    const auto& load = daemon.tasks().placer().assignments().load();
    return load.on_cpu(0) + load.on_cpu(1) + load.on_cpu(2) + load.on_cpu(3);
}

void weigh_all(const Machine& machine, Instance& daemon) {
    const auto root = host::Root::open(machine.path());
    Weighing weighing(*root, daemon.tasks().table(), daemon.tasks().placer().assignments(), std::nullopt);
    EXPECT_TRUE(weighing.step([] { return false; }));
}

void add_app_with_workers(Machine& machine) {
    machine.policy("app", "match: {comm: app}\nspread: cpu\nbind: cpu\n"
                          "threads:\n  - {name: \"own*\", leave: true}\n");
    machine.process(100, "app");
    for (int tid = 101; tid < 104; ++tid)
        machine.thread(100, tid, "worker");
}

TEST(Balance, ThreadsThatAPolicyDoesNotPlaceAnyMoreFreeTheirSlots) {
    for (const std::string affinity : {"affinity: none\n", "affinity: irq\nnics: [eth0]\n"}) {
        Machine machine;
        add_app_with_workers(machine);
        Instance daemon(machine);
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
        ASSERT_EQ(load_of_all(daemon), 4 * planner::one_cpu);
        machine.policy("app", "match: {comm: app}\n" + affinity);
        ASSERT_TRUE(daemon.reload());
        daemon.pass();
        EXPECT_LE(load_of_all(daemon), planner::one_cpu) << affinity << "the main thread waits to be weighed";
        weigh_all(machine, daemon);
        EXPECT_EQ(load_of_all(daemon), 0) << affinity;
    }
}

TEST(Balance, AThreadThatComesUnderARuleThatLeavesItFreesItsSlot) {
    Machine machine;
    add_app_with_workers(machine);
    Instance daemon(machine);
    ASSERT_TRUE(daemon.manager().start());
    daemon.pass();
    for (int tid = 101; tid < 103; ++tid) {
        machine.thread(100, tid, "own", machine.allowed(100, tid));
        daemon.manager().tasks().thread_renamed(100, tid, "own");
    }
    daemon.finish();
    EXPECT_EQ(load_of_all(daemon), 2 * planner::one_cpu);
}

TEST(Balance, AThreadWhoseCpusetHasNoneOfThePolicysCpusFreesItsSlot) {
    Machine machine;
    machine.policy("app", two_places);
    machine.process(100, "app");
    machine.thread(100, 101, "worker");
    Instance daemon(machine);
    ASSERT_TRUE(daemon.manager().start());
    daemon.pass();
    ASSERT_EQ(load_of_all(daemon), 2 * planner::one_cpu);
    machine.tree().file("sys/fs/cgroup/pod/cpuset.cpus.effective", "1,3\n");
    machine.tree().file("proc/100/cpuset", "/pod\n");
    machine.process(100, "app", "1,3");
    machine.thread(100, 101, "worker", "1,3");
    daemon.pass();
    weigh_all(machine, daemon);
    EXPECT_EQ(load_of_all(daemon), 0);
}

TEST(Balance, TheSharedSlotOfAProcessStaysWhileOnlyItsMainThreadIsLeftAlone) {
    Machine machine;
    machine.policy("app", "match: {comm: app}\nspread: any\nbind: cpu\n"
                          "threads:\n  - {name: app, leave: true}\n");
    machine.process(100, "app");
    machine.thread(100, 101, "worker");
    Instance daemon(machine);
    ASSERT_TRUE(daemon.manager().start());
    daemon.pass();
    const auto slot = machine.allowed(100, 101);
    machine.process(200, "app", slot);
    machine.thread(200, 201, "worker");
    for (int round = 0; round < 3; ++round) {
        daemon.pass();
        weigh_all(machine, daemon);
        EXPECT_EQ(machine.allowed(100, 101), slot);
        EXPECT_EQ(load_of_all(daemon), 2 * planner::one_cpu);
    }
}

TEST(Balance, BusyProcessesInACpusetAreTakenApartWithinIt) {
    Machine machine;
    machine.policy("app", "match: {comm: app}\nspread: cpu\nbind: cpu\n");
    machine.tree().file("sys/fs/cgroup/pod/cpuset.cpus.effective", "0,2\n");
    for (int pid = 100; pid < 104; ++pid) {
        machine.process(pid, "app", "0,2");
        machine.tree().file(fmt::format("proc/{}/cpuset", pid), "/pod\n");
        machine.wanted(pid, pid, lifetime() / (pid % 2 == 0 ? 1 : 1000));
    }
    Instance daemon(machine);
    ASSERT_TRUE(daemon.manager().start());
    daemon.pass();
    ASSERT_EQ(machine.allowed(100, 100), machine.allowed(102, 102)) << "nothing was known of them";
    daemon.pass();
    EXPECT_NE(machine.allowed(100, 100), machine.allowed(102, 102));
    EXPECT_EQ(machine.allowed(101, 101), machine.allowed(103, 103)) << "who may stay, stays";
    EXPECT_GT(daemon.status()["balance"]["quotient"], 0.95);
}

TEST(Balance, WhatIsMeasuredAfterMovesIsDroppedWhenThePlacementsChangeMeanwhile) {
    const auto at_once = [] { return true; };
    const auto never = [] { return false; };
    for (const bool is_reload : {false, true}) {
        FourProcesses four({100, 101, 102, 103});
        Instance daemon(four.machine);
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
        for (int pid = 100; pid < 104;
             ++pid) // two that share a CPU are busy still, the others half of the time
            four.machine.wanted(pid, pid, lifetime() / (four.mask(pid) == four.mask(100) ? 1 : 1000));
        const auto root = host::Root::open(four.machine.path());
        test::ReadableLog log;
        auto current = daemon.manager().queues().current();
        int moved = 0;
        Balancer balancer({*root,
                           current,
                           daemon.tasks().table(),
                           daemon.tasks().placer().assignments(),
                           std::chrono::seconds(60),
                           {[&] { ++moved; }, [](const TaskId&) { return false; }},
                           log.log()});
        while (!balancer.step(never)) {
        }
        ASSERT_EQ(moved, 1);
        const auto before = balancer.goodness()->busiest;
        EXPECT_GT(before, planner::one_cpu * 3 / 2);

        ASSERT_FALSE(balancer.step(at_once)) << "it has only begun to measure again";
        if (is_reload)
            current.world = std::make_shared<World>(current->policies(), current->machine());
        else
            current->update(machine::Machine(current->machine()));
        EXPECT_TRUE(balancer.step(never));
        EXPECT_EQ(balancer.goodness()->busiest, before) << "nothing was measured on what is gone";

        while (!balancer.step(at_once)) {
        }
        EXPECT_LT(balancer.goodness()->busiest, planner::one_cpu * 7 / 4) << "the next pass measures anew";
        EXPECT_EQ(balancer.goodness()->moves, 2U);
    }
}

TEST(Balance, APlanSaysHowWellTasksWouldBePlaced) {
    const FourProcesses four({100, 101});
    Instance daemon(four.machine);
    ASSERT_TRUE(daemon.manager().start());
    const auto plan = daemon.plan();
    EXPECT_EQ(plan["actions"].size(), 4U);
    EXPECT_EQ(plan["balance"]["quotient"], 1.0);
    EXPECT_EQ(plan["balance"]["busiest_core"], 2.0);
}

} // namespace
} // namespace affinityd::app

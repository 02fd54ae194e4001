// SPDX-License-Identifier: Apache-2.0
// What a daemon leaves behind that is killed at a bad moment, or while CPUs go, and what the next makes of
// it.
#include "simulated.hpp"

#include <filesystem>

namespace affinityd::app {
namespace {

using machine::TaskMask;
using test::Instance;
using test::Machine;

constexpr auto on_two = "match: {comm: server}\ncpus: \"2\"\nbind: set\n";
constexpr auto on_three = "match: {comm: server}\ncpus: \"3\"\nbind: set\n";

class Kills : public testing::Test {
  protected:
    static void start(Instance& daemon) {
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
    }
    /// All policies but one that concerns nobody here.
    void remove_policies() {
        std::filesystem::remove_all(machine_.policies());
        machine_.tree().folder("policies");
        machine_.policy("unrelated", "match: {comm: unrelated}\n");
    }
    void move(int pid, const std::string& group) {
        machine_.tree().file("proc/" + std::to_string(pid) + "/cgroup", "0::" + group + "\n");
    }
    /// CPU 3 goes offline, and who was there may run everywhere.
    void take_cpu_3() { machine_.tree().file("sys/devices/system/cpu/online", "0-2\n"); }

    void want(const std::string& cpus) {
        machine_.policy("server", "match: {comm: server}\nbind: set\ncpus: \"" + cpus + "\"\n");
    }
    struct Killed {};
    void kill_before_moving_to(const std::string& cpus) {
        const auto before = machine_.allowed(10, 10);
        want(cpus);
        Instance daemon(machine_);
        ASSERT_TRUE(daemon.manager().start());
        daemon.enforcer().before_apply = [] { throw Killed(); };
        EXPECT_THROW(daemon.pass(), Killed);
        ASSERT_EQ(machine_.allowed(10, 10), before);
    }
    void run_until_moved_from(const std::string& first, const std::string& second) {
        want(first);
        {
            Instance daemon(machine_);
            start(daemon);
            ASSERT_EQ(machine_.allowed(10, 10), first);
        }
        kill_before_moving_to(second);
    }

    Machine machine_;
};

// Between the journal's line and the write of a second change

TEST_F(Kills, BeforeATaskIsMovedOnLeaveItsOriginalToTheNextDaemon) {
    machine_.process(10, "server", "0-1");
    machine_.policy("server", on_two);
    {
        Instance daemon(machine_);
        start(daemon);
        ASSERT_EQ(machine_.allowed(10, 10), "2");
        const TaskMask task{{10, 100}, 10, "server"};
        ASSERT_TRUE(daemon.journal().remember(task, CpuSet{0}, CpuSet{3}, "server"));
    }
    remove_policies();
    Instance next(machine_);
    start(next);
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
}

TEST_F(Kills, BeforeATaskIsMovedOnAreNobodysDoing) {
    machine_.process(10, "server", "0-1");
    for (const std::string drift : {"once", "yield", "enforce"}) {
        machine_.policy("server", std::string(on_two) + "drift: " + drift + "\n");
        {
            Instance daemon(machine_);
            start(daemon);
            ASSERT_EQ(machine_.allowed(10, 10), "2");
            const TaskMask task{{10, 100}, 10, "server"};
            ASSERT_TRUE(daemon.journal().remember(task, CpuSet{0}, CpuSet{3}, "server"));
        }
        machine_.policy("server", std::string(on_three) + "drift: " + drift + "\n");
        Instance next(machine_);
        start(next);
        EXPECT_EQ(machine_.allowed(10, 10), "3") << drift;
        next.stop();
        EXPECT_EQ(machine_.allowed(10, 10), "0-1") << drift;
    }
}

TEST_F(Kills, AgainAndAgainBeforeATaskIsMovedOnKeepItsOriginal) {
    machine_.process(10, "server", "0-1");
    run_until_moved_from("2", "3");
    for (const auto* cpus : {"1", "0", "3"})
        kill_before_moving_to(cpus);
    remove_policies();
    Instance next(machine_);
    start(next);
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
}

TEST_F(Kills, BeforeAnInterruptIsMovedOnLeaveItsOriginalToTheNextDaemon) {
    machine_.set_irq(31, "1-2");
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,2\"\n");
    {
        Instance daemon(machine_);
        start(daemon);
        ASSERT_EQ(machine_.irq(31), "2");
        for (const auto& entry : daemon.journal().queues()) {
            const auto* irq = std::get_if<machine::IrqMask>(&entry.subject);
            if (irq == nullptr || irq->irq != 31) continue;
            ASSERT_TRUE(daemon.journal().remember(entry.subject, CpuSet{0}, CpuSet{3}, "nic"));
        }
    }
    remove_policies();
    Instance next(machine_);
    start(next);
    EXPECT_EQ(machine_.irq(31), "1-2");
}

TEST_F(Kills, AfterAChangeLeaveWhatItHadBeforeToOthers) {
    machine_.set_irq(31, "1-2");
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,3\"\n");
    {
        Instance daemon(machine_);
        start(daemon);
        ASSERT_EQ(machine_.irq(31), "3");
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,2\"\n");
        ASSERT_TRUE(daemon.reload());
        daemon.pass();
        ASSERT_EQ(machine_.irq(31), "2");
    }
    machine_.set_irq(31, "3"); // somebody else
    remove_policies();
    Instance next(machine_);
    start(next);
    EXPECT_EQ(machine_.irq(31), "3");
}

// CPUs that go

TEST_F(Kills, OriginalsOutliveThePolicysCpus) {
    machine_.process(10, "server", "0-1");
    machine_.policy("server", on_three);
    for (const bool has_policy : {true, false}) {
        {
            Instance daemon(machine_);
            start(daemon);
            ASSERT_EQ(machine_.allowed(10, 10), "3");
        }
        take_cpu_3();
        machine_.process(10, "server", "0-2");
        if (!has_policy) remove_policies();
        Instance next(machine_);
        start(next);
        next.stop();
        EXPECT_EQ(machine_.allowed(10, 10), "0-1") << has_policy;
        machine_.tree().file("sys/devices/system/cpu/online", "0-3\n");
    }
}

TEST_F(Kills, OriginalsOutliveCpusThatGoWhileADaemonRuns) {
    for (const bool is_noticed : {true, false}) {
        machine_.process(10, "server", "0-1");
        machine_.policy("server", on_three);
        Instance daemon(machine_);
        start(daemon);
        ASSERT_EQ(machine_.allowed(10, 10), "3");
        take_cpu_3();
        machine_.process(10, "server", "0-2");
        if (is_noticed) {
            daemon.manager().expect_changes();
            daemon.pass(true);
            EXPECT_EQ(daemon.log().times("somebody else"), 0U);
        }
        daemon.stop();
        EXPECT_EQ(machine_.allowed(10, 10), "0-1") << is_noticed;
        machine_.tree().file("sys/devices/system/cpu/online", "0-3\n");
    }
}

TEST_F(Kills, OriginalsOfInterruptsOutliveTheirCpus) {
    for (const bool is_killed : {true, false}) {
        machine_.set_irq(31, "1-2");
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,3\"\n");
        Instance daemon(machine_);
        start(daemon);
        ASSERT_EQ(machine_.irq(31), "3");
        take_cpu_3();
        machine_.set_irq(31, "0-2");
        if (!is_killed) daemon.stop();
        if (is_killed) {
            Instance next(machine_);
            remove_policies();
            start(next);
        }
        EXPECT_EQ(machine_.irq(31), "1-2") << is_killed;
        machine_.tree().file("sys/devices/system/cpu/online", "0-3\n");
    }
}

TEST_F(Kills, WhileATaskIsMovedOffACpuThatThenGoesLeaveItsOriginal) {
    machine_.process(10, "server", "0-1");
    run_until_moved_from("3", "2");
    take_cpu_3();
    machine_.process(10, "server", "0-2");
    remove_policies();
    Instance next(machine_);
    start(next);
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
}

TEST_F(Kills, TwiceWhilePartOfAMaskIsOfflineLeaveItsOriginal) {
    machine_.process(10, "server", "0-1");
    run_until_moved_from("2-3", "1");
    take_cpu_3();
    machine_.process(10, "server", "2");
    kill_before_moving_to("0");
    remove_policies();
    Instance next(machine_);
    start(next);
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
}

TEST_F(Kills, SettingsThatTheKernelDoesNotWidenAreTheirOwnersAlsoIfTheyAreOfAllCpus) {
    for (const std::string own : {"3", "f"}) {
        const std::string queues = "sys/class/net/eth0/queues/";
        machine_.tree().file(queues + "rx-0/rps_cpus", "4\n");
        machine_.tree().file(queues + "tx-0/xps_cpus", "2\n");
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"3\"\n");
        Instance daemon(machine_);
        start(daemon);
        ASSERT_EQ(machine_.steering("rx-0/rps_cpus"), "0") << "off";
        ASSERT_EQ(machine_.steering("tx-0/xps_cpus"), "8");
        take_cpu_3();
        machine_.tree().file(queues + "rx-0/rps_cpus", own + "\n");
        machine_.tree().file(queues + "tx-0/xps_cpus", own + "\n");
        daemon.stop();
        EXPECT_EQ(machine_.steering("rx-0/rps_cpus"), own);
        EXPECT_EQ(machine_.steering("tx-0/xps_cpus"), own);
        machine_.tree().file("sys/devices/system/cpu/online", "0-3\n");
    }
}

// Masks of somebody's own

TEST_F(Kills, AMaskThatIsSetAfterThePolicyWentIsNoLeftOver) {
    machine_.process(10, "server");
    machine_.policy("server", on_two);
    {
        Instance daemon(machine_);
        daemon.enforcer().now = 200;
        start(daemon);
        ASSERT_EQ(machine_.allowed(10, 10), "2");
        remove_policies();
        ASSERT_TRUE(daemon.reload());
        daemon.finish();
        daemon.pass();
        ASSERT_EQ(machine_.allowed(10, 10), "0-3");
        machine_.end(10);
        machine_.process(20, "server", "2", 1, 0, 90'000); // CPUAffinity=2, and restarted
        daemon.pass();
    }
    Instance next(machine_);
    next.enforcer().now = 100'000;
    start(next);
    EXPECT_EQ(machine_.allowed(20, 20), "2");
    next.stop();
    EXPECT_EQ(machine_.allowed(20, 20), "2");
}

TEST_F(Kills, AMaskThatIsSetBetweenTwoTasksOfAPolicyIsNoLeftOver) {
    machine_.process(10, "server");
    machine_.policy("server", on_two);
    {
        Instance daemon(machine_);
        daemon.enforcer().now = 200;
        start(daemon);
        ASSERT_EQ(machine_.allowed(10, 10), "2");
        machine_.end(10);
        daemon.enforcer().now = 1000;
        daemon.pass();
        machine_.process(20, "job", "2", 1, 0, 5000);
        move(20, "/system.slice/server.service");
        machine_.process(30, "server", "0-3", 1, 0, 7000);
        daemon.enforcer().now = 8000;
        daemon.pass();
        ASSERT_EQ(machine_.allowed(30, 30), "2");
    }
    Instance next(machine_);
    next.enforcer().now = 9000;
    start(next);
    EXPECT_EQ(machine_.allowed(20, 20), "2");
}

TEST_F(Kills, OfANumberThatIsAnothersByNowNothingIsInherited) {
    for (const auto* group : {"/system.slice/server.service", "/user.slice/session-1.scope"}) {
        machine_.process(10, "server");
        machine_.policy("server", on_two);
        {
            Instance daemon(machine_);
            daemon.enforcer().now = 200;
            start(daemon);
            ASSERT_EQ(machine_.allowed(10, 10), "2");
        }
        machine_.end(10);
        machine_.process(10, "sh", "0-3", 1, 0, 5000);
        machine_.thread(10, 11, "own", "2", 1, 0, 5001);
        machine_.process(50, "tool", "2", 10, 0, 6000);
        move(10, group);
        move(50, group);
        Instance next(machine_);
        next.enforcer().now = 10'000;
        start(next);
        EXPECT_EQ(machine_.allowed(50, 50), "2") << group;
        EXPECT_EQ(machine_.allowed(10, 11), "2") << group;
        next.stop();
        EXPECT_EQ(machine_.allowed(50, 50), "2") << group;
        machine_.end(50);
        machine_.end(10);
    }
}

// Children that are left behind

TEST_F(Kills, ChildrenOfWorkersThatInheritedTheirMaskGetTheOriginal) {
    machine_.process(10, "server");
    machine_.policy("server", on_two);
    {
        Instance daemon(machine_);
        daemon.enforcer().now = 200;
        start(daemon);
        machine_.process(20, "server", "2", 10, 0, 300);
        move(20, "/system.slice/worker.service");
        daemon.pass();
    }
    machine_.end(20);
    machine_.process(50, "child", "2", 1, 0, 400);
    move(50, "/system.slice/worker.service");
    Instance next(machine_);
    next.enforcer().now = 1000;
    start(next);
    EXPECT_EQ(machine_.allowed(50, 50), "0-3");
    EXPECT_EQ(next.log().times("from parents that ended while no daemon ran"), 1U) << next.log().text();
}

TEST_F(Kills, GivenMasksAreWrittenDownBeforeTheyAreGiven) {
    machine_.process(10, "server");
    machine_.policy("server", on_two);
    std::size_t given = 0;
    Instance daemon(machine_);
    daemon.enforcer().before_apply = [&] { given = daemon.journal().contents().given().size(); };
    start(daemon);
    ASSERT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_EQ(given, 1U);
}

} // namespace
} // namespace affinityd::app

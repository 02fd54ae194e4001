// SPDX-License-Identifier: Apache-2.0
// on_stop: keep leaves masks in place and loses no original; a mask of ours is never taken for one.
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using test::Instance;

class Keep : public testing::Test {
  protected:
    Keep() {
        machine_.process(10, "server", "1-3");
        machine_.thread(10, 11, "worker", "0-3", 1, 0, 111);
        machine_.set_irq(31, "3"); // an administrator's
        machine_.tree().file("proc/irq/default_smp_affinity", "f\n");
    }
    void policies(const std::string& on_stop, const std::string& cpus = "2") const {
        machine_.policy("server", "match: {comm: server}\ncpus: \"" + cpus + "\"\nbind: set\n" + on_stop);
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,2\"\n" + on_stop);
    }
    void no_policies() const {
        for (const char* file : {"policies/server.yaml", "policies/nic.yaml"})
            std::filesystem::remove(machine_.path(file));
        machine_.policy("unrelated", "match: {comm: unrelated}\n");
    }
    void start(Instance& daemon) const {
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
    }
    /// A daemon whose policies keep, from its start to its end.
    void keep() const {
        policies("on_stop: keep\n");
        Instance first(machine_);
        start(first);
        first.stop();
        EXPECT_EQ(first.journal().size(), 0U);
        expect_kept();
    }
    void expect_kept() const {
        EXPECT_EQ(machine_.allowed(10, 10), "2");
        EXPECT_EQ(machine_.allowed(10, 11), "2");
        EXPECT_EQ(machine_.irq(30), "0");
        EXPECT_EQ(machine_.irq(31), "2");
        EXPECT_EQ(machine_.steering("tx-0/xps_cpus"), "1");
    }
    void expect_originals() const {
        EXPECT_EQ(machine_.allowed(10, 10), "1-3");
        EXPECT_EQ(machine_.allowed(10, 11), "0-3");
        EXPECT_EQ(machine_.irq(30), "0-3");
        EXPECT_EQ(machine_.irq(31), "3");
        for (const char* file : {"tx-0/xps_cpus", "tx-1/xps_cpus"})
            EXPECT_EQ(machine_.steering(file), "0") << file;
    }
    test::Machine machine_;
};

TEST_F(Keep, ADaemonThatRestoresAtItsEndPutsBackWhatWasThereBeforeTheFirst) {
    keep();
    policies("");
    Instance second(machine_);
    start(second);
    EXPECT_EQ(second.enforcer().applied, 0U) << "all of it is in place";
    second.stop();
    expect_originals();
}

TEST_F(Keep, ADaemonThatMovesWhatWasKeptPutsBackWhatWasThereBeforeTheFirst) {
    keep();
    policies("", "0-1");
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"1\"\n");
    Instance second(machine_);
    start(second);
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
    EXPECT_EQ(machine_.irq(31), "1");
    second.stop();
    expect_originals();
}

TEST_F(Keep, AReleaseByTheNextDaemonPutsBackWhatWasThereBeforeTheFirst) {
    for (const bool is_wanted : {true, false}) {
        keep();
        policies("");
        if (!is_wanted) no_policies();
        Instance second(machine_);
        start(second);
        expect_kept();
        ASSERT_TRUE(second.release(""));
        second.finish();
        expect_originals();
    }
}

TEST_F(Keep, APolicyOfTheNextDaemonThatGoesPutsBackWhatWasThereBeforeTheFirst) {
    keep();
    policies("");
    Instance second(machine_);
    start(second);
    no_policies();
    ASSERT_TRUE(second.reload());
    second.finish();
    expect_originals();
}

TEST_F(Keep, WhatNoPolicyOfTheNextDaemonWantsStaysAndIsRestoredByALaterOne) {
    keep();
    no_policies();
    {
        Instance second(machine_);
        start(second);
        second.pass();
        second.stop();
    }
    expect_kept();
    policies("");
    Instance third(machine_);
    start(third);
    third.stop();
    expect_originals();
}

TEST_F(Keep, OriginalsOutlastSeveralDaemonsThatKeepAndACrash) {
    keep();
    keep();
    policies("", "3");
    { // killed
        Instance crashed(machine_);
        start(crashed);
    }
    policies("");
    Instance last(machine_);
    start(last);
    last.stop();
    expect_originals();
}

TEST_F(Keep, AMaskThatSomebodySetSinceIsTheOriginalNow) {
    keep();
    machine_.process(10, "server", "0-1");
    machine_.set_irq(30, "1");
    policies("");
    Instance second(machine_);
    start(second);
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_EQ(machine_.irq(30), "0");
    second.stop();
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
    EXPECT_EQ(machine_.irq(30), "1");
}

TEST_F(Keep, AThreadThatWasBornWithAKeptMaskGetsWhatItsCreatorHad) {
    keep();
    machine_.thread(10, 12, "late", "2", 1, 0, 112);
    machine_.process(20, "child", "2", 10, 0, 120);
    no_policies();
    {
        Instance second(machine_);
        start(second);
        second.pass();
        second.stop();
    }
    EXPECT_EQ(machine_.allowed(10, 12), "2") << "no policy wants it: it stays as its creator does";
    EXPECT_EQ(machine_.allowed(20, 20), "2");
    policies("");
    Instance third(machine_);
    start(third);
    third.stop();
    EXPECT_NE(machine_.allowed(10, 12), "2");
}

TEST_F(Keep, AMaskOfOursIsNoMaskOfItsOwnForPriorKeep) {
    keep();
    policies("prior: keep\n", "3");
    Instance second(machine_);
    start(second);
    EXPECT_EQ(machine_.allowed(10, 10), "3");
    second.stop();
    EXPECT_EQ(machine_.allowed(10, 10), "1-3");
}

TEST_F(Keep, APolicyThatIsRemovedAndAddedAgainRestoresTheFirstOriginals) {
    policies("on_stop: keep\n");
    Instance daemon(machine_);
    start(daemon);
    no_policies();
    ASSERT_TRUE(daemon.reload());
    daemon.finish();
    expect_kept();
    policies("");
    ASSERT_TRUE(daemon.reload());
    daemon.finish();
    daemon.stop();
    expect_originals();
}

TEST_F(Keep, AllowedCpusOfAUnitThatWereKeptAreRestoredByALaterDaemon) {
    const auto fence = [&](const std::string& rest) {
        machine_.policy("server", "match: {comm: server}\ncpus: \"2\"\nmeans: cpuset\n" + rest);
    };
    machine_.tree().file("sys/fs/cgroup/cgroup.controllers", "cpuset\n");
    machine_.tree().file("sys/fs/cgroup/system.slice/server.service/cgroup.procs", "10\n");
    const std::string unit = "server.service";
    const CpuSet original = CpuSet::range(1, 2);
    fence("on_stop: keep\n");
    std::map<std::string, CpuSet> units{{unit, original}};
    {
        Instance first(machine_);
        first.systemd().units = units;
        start(first);
        first.stop();
        units = first.systemd().units;
        ASSERT_EQ(units[unit], CpuSet{2});
    }
    fence("");
    for (const bool is_wanted : {true, false}) {
        if (!is_wanted) no_policies();
        Instance second(machine_);
        second.systemd().units = {{unit, CpuSet{2}}};
        start(second);
        EXPECT_EQ(second.systemd().units[unit], CpuSet{2});
        if (is_wanted) {
            second.stop();
        } else {
            ASSERT_TRUE(second.release(""));
            second.finish();
        }
        EXPECT_EQ(second.systemd().units[unit], original) << is_wanted;
        if (!is_wanted) continue;
        fence("on_stop: keep\n");
        Instance third(machine_);
        third.systemd().units = {{unit, original}};
        start(third);
        third.stop();
    }
}

TEST_F(Keep, ThreadsOfInterruptsThatWereKeptAreRestoredByALaterDaemon) {
    constexpr unsigned kernel = 0x00200000; // PF_KTHREAD
    machine_.tree().file("sys/devices/pci0000:00/0000:00:03.0/net/eth0/threaded", "1\n");
    machine_.process(50, "irq/30-eth0-TxRx-0", "0-3", 2, kernel);
    machine_.process(60, "napi/eth0-8194", "1-3", 2, kernel);
    machine_.process(61, "napi/eth0-8193", "0-3", 2, kernel);
    keep();
    EXPECT_EQ(machine_.allowed(50, 50), "0");
    EXPECT_EQ(machine_.allowed(60, 60), "2");
    policies("");
    Instance second(machine_);
    start(second);
    second.stop();
    EXPECT_EQ(machine_.allowed(50, 50), "0-3");
    EXPECT_EQ(machine_.allowed(60, 60), "1-3");
    EXPECT_EQ(machine_.allowed(61, 61), "0-3");
    expect_originals();
}

TEST_F(Keep, FlowTablesAndMapsThatWereKeptAreRestoredByALaterDaemon) {
    const std::string queues = "sys/devices/pci0000:00/0000:00:03.0/net/eth0/queues/";
    const auto full = [&](const std::string& on_stop) {
        machine_.policy("nic",
                        "match: {comm: server}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\n" +
                            on_stop);
    };
    std::filesystem::remove_all(machine_.path(queues + "rx-1"));
    machine_.tree().file(queues + "rx-0/rps_flow_cnt", "64\n");
    machine_.tree().file("proc/sys/net/core/rps_sock_flow_entries", "4096\n");
    const auto original = machine_.steering("rx-0/rps_cpus");
    full("on_stop: keep\n");
    {
        Instance first(machine_);
        start(first);
        first.pass();
        first.stop();
    }
    ASSERT_EQ(machine_.steering("rx-0/rps_flow_cnt"), "32768");
    full("");
    Instance second(machine_);
    start(second);
    second.pass();
    second.stop();
    EXPECT_EQ(machine_.steering("rx-0/rps_flow_cnt"), "64");
    EXPECT_EQ(machine_.text("proc/sys/net/core/rps_sock_flow_entries"), "4096");
    EXPECT_EQ(machine_.steering("rx-0/rps_cpus"), original);
}

/// A daemon is killed, and its journal is lost.
class LostJournal : public Keep {
  protected:
    void lose() const {
        policies("");
        {
            Instance killed(machine_);
            start(killed);
        }
        std::filesystem::remove(machine_.path("undo.journal"));
    }
    void expect_defaults() const {
        EXPECT_EQ(machine_.allowed(10, 10), "0-3");
        EXPECT_EQ(machine_.allowed(10, 11), "0-3");
        EXPECT_EQ(machine_.irq(30), "0-3");
        EXPECT_EQ(machine_.irq(31), "0-3");
        EXPECT_EQ(machine_.steering("tx-0/xps_cpus"), "0");
    }
};

TEST_F(LostJournal, WhatIsInPlaceGetsTheKernelsDefault) {
    lose();
    Instance next(machine_);
    start(next);
    next.stop();
    expect_defaults();
}

TEST_F(LostJournal, WhatOtherPoliciesMoveAfterDamageGetsTheKernelsDefault) {
    lose();
    machine_.tree().file("undo.journal", "task\t10\t100\t10\tserver\thel\nirq\tgarbage\n");
    policies("", "1");
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"1\"\n");
    Instance next(machine_);
    start(next);
    EXPECT_FALSE(next.journal().damaged()) << "mended";
    EXPECT_EQ(machine_.allowed(10, 10), "1");
    next.stop();
    expect_defaults();
}

TEST_F(LostJournal, WhatOtherPoliciesMoveGetsTheKernelsDefault) {
    lose();
    policies("", "1");
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"1\"\n");
    Instance next(machine_);
    start(next);
    EXPECT_EQ(machine_.allowed(10, 10), "1");
    next.stop();
    expect_defaults();
}

TEST_F(LostJournal, ALaterTaskOfTheSameNumberKeepsItsOwnMask) {
    lose();
    machine_.process(10, "server", "2", 1, 0, 999);
    Instance next(machine_);
    next.enforcer().now = 100'000;
    start(next);
    next.stop();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
}

TEST_F(LostJournal, AFileThatIsRemovedWhileTheDaemonRunsIsThereAgainAfterAPass) {
    policies("");
    {
        Instance killed(machine_);
        start(killed);
        std::filesystem::remove(machine_.path("undo.journal"));
        std::filesystem::remove(machine_.path("undo.journal.granted"));
        killed.pass();
    }
    Instance next(machine_);
    start(next);
    next.stop();
    expect_originals();
}

TEST_F(Keep, AMaskOfOursThatSomebodySetsAgainIsNoOriginal) {
    policies("");
    Instance daemon(machine_);
    start(daemon);
    ASSERT_TRUE(daemon.release(""));
    daemon.finish();
    expect_originals();
    machine_.set_irq(30, "0"); // a driver that kept it for its next start, or a tool that saved it
    machine_.process(10, "server", "2");
    daemon.pass();
    EXPECT_EQ(machine_.irq(30), "0") << "no policy wants it now";
    daemon.apply();
    daemon.finish();
    daemon.stop();
    expect_originals();
}

} // namespace
} // namespace affinityd::app

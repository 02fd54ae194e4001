// SPDX-License-Identifier: Apache-2.0
// Interfaces that get another name while nobody looks: interrupts and queues are still known as ours.
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using test::Instance;

constexpr auto function = "0000:00:03.0";

class Renames : public testing::Test {
  protected:
    Renames() {
        machine_.tree().file("proc/irq/default_smp_affinity", "f\n");
        machine_.set_irq(31, "1-2"); // an administrator's
    }
    void policy(const std::string& nic, const std::string& cpus, const std::string& rest = "") const {
        machine_.policy("nic", "affinity: irq\nnics: [\"" + nic + "\"]\ncpus: \"" + cpus + "\"\n" + rest);
    }
    void no_policies() const {
        std::filesystem::remove(machine_.path("policies/nic.yaml"));
        machine_.policy("unrelated", "match: {comm: unrelated}\n");
    }
    /// As igb, e1000e and vmxnet3 do when the link goes down and up again: the handlers' labels have the new
    /// name.
    void rename(const std::string& from, const std::string& to) {
        machine_.free_handlers(from, 30);
        machine_.rename_nic(from, to, function);
        machine_.request_handlers(to, function, 30);
    }
    void start(Instance& daemon) const {
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
        daemon.pass(true);
    }
    /// A daemon that is killed after it has set the interrupts of eth0.
    void place_and_die() const {
        policy("eth0", "0,2");
        Instance daemon(machine_);
        start(daemon);
        expect_irqs("0", "2");
    }
    void expect_irqs(const std::string& first, const std::string& second) const {
        EXPECT_EQ(machine_.irq(30), first);
        EXPECT_EQ(machine_.irq(31), second);
    }
    void expect_originals(const std::string& nic, Instance& daemon, const std::string& second = "1-2") const {
        expect_irqs("0-3", second);
        for (const char* file : {"tx-0/xps_cpus", "tx-1/xps_cpus"})
            EXPECT_EQ(machine_.steering(file, nic), "0") << file;
        EXPECT_EQ(daemon.journal().size(), 0U);
    }
    test::Machine machine_;
};

TEST_F(Renames, BetweenTwoDaemonsLeaveNothingPinnedThatNoPolicyWants) {
    place_and_die();
    rename("eth0", "lan0");
    Instance next(machine_);
    start(next);
    expect_irqs("0-3", "1-2");
    next.stop();
    expect_originals("lan0", next);
}

TEST_F(Renames, BetweenTwoDaemonsAreUndoneByOneThatOnlyStops) {
    place_and_die();
    rename("eth0", "lan0");
    Instance next(machine_);
    ASSERT_TRUE(next.manager().start());
    next.stop();
    expect_originals("lan0", next);
}

TEST_F(Renames, BetweenTwoLooksLeaveNothingPinned) {
    policy("eth0", "0,2");
    Instance daemon(machine_);
    start(daemon);
    expect_irqs("0", "2");
    rename("eth0", "lan0");
    daemon.manager().link_changed("lan0");
    daemon.finish();
    daemon.pass();
    expect_irqs("0-3", "1-2");
    daemon.stop();
    expect_originals("lan0", daemon);
}

TEST_F(Renames, OurMaskIsNoOriginalForAPolicyThatWantsTheNewName) {
    place_and_die();
    for (const char* cpus : {"0,2", "1,3"}) {
        rename(cpus[0] == '0' ? "eth0" : "lan0", cpus[0] == '0' ? "lan0" : "wan0");
        policy("*an0", cpus);
        Instance next(machine_);
        start(next);
        expect_irqs({cpus[0]}, {cpus[2]});
        EXPECT_EQ(next.journal().size(), 4U) << "the records of the former name are those of the new one";
    }
    Instance last(machine_);
    start(last);
    last.stop();
    expect_originals("wan0", last);
}

TEST_F(Renames, OurMaskIsNoOriginalForARunningDaemonEither) {
    policy("*0", "0,2");
    Instance daemon(machine_);
    start(daemon);
    rename("eth0", "lan0");
    policy("*0", "1,3");
    ASSERT_TRUE(daemon.reload());
    daemon.finish();
    daemon.manager().link_changed("lan0");
    daemon.finish();
    daemon.pass();
    expect_irqs("1", "3");
    daemon.stop();
    expect_originals("lan0", daemon);
}

TEST_F(Renames, WhatWasKeptIsPutBackUnderTheNewName) {
    policy("eth0", "0,2", "on_stop: keep\n");
    {
        Instance first(machine_);
        start(first);
        first.stop();
    }
    expect_irqs("0", "2");
    rename("eth0", "lan0");
    policy("lan0", "0,2");
    Instance next(machine_);
    start(next);
    expect_irqs("0", "2");
    next.stop();
    expect_irqs("0-3", "1-2");
}

TEST_F(Renames, WithoutAJournalTheMaskIsStillKnownAsOurs) {
    place_and_die();
    rename("eth0", "lan0");
    std::filesystem::remove(machine_.path("undo.journal"));
    policy("lan0", "1,3");
    Instance next(machine_);
    start(next);
    expect_irqs("1", "3");
    next.stop();
    expect_originals("lan0", next, "0-3"); // the kernel's default
}

TEST_F(Renames, AMaskThatSomebodyElseSetMeanwhileStays) {
    place_and_die();
    rename("eth0", "lan0");
    machine_.set_irq(31, "1");
    policy("lan0", "0,2", "");
    Instance next(machine_);
    start(next);
    expect_irqs("0", "2");
    next.stop();
    expect_irqs("0-3", "1");
}

TEST_F(Renames, AMaskThatSomebodyElseSetMeanwhileYieldsToThePolicyAndIsTheOriginal) {
    policy("*0", "0,2");
    {
        Instance killed(machine_);
        start(killed);
        expect_irqs("0", "2");
    }
    rename("eth0", "lan0");
    machine_.set_irq(31, "3");
    Instance next(machine_);
    ASSERT_TRUE(next.manager().start());
    for (const bool machine_changed : {false, true}) {
        next.pass(machine_changed);
        expect_irqs("0", "2");
    }
    next.stop();
    expect_originals("lan0", next, "3");
}

TEST_F(Renames, SteeringThatSomebodyElseSetMeanwhileIsTheOriginalAlsoOfADaemonThatEndsSoon) {
    const std::string file = "tx-0/xps_cpus";
    for (const int passes : {1, 2}) {
        machine_.add_virtual("va", 7);
        machine_.tree().file("sys/class/net/va/queues/" + file, "8\n");
        policy("v*", "0");
        {
            Instance killed(machine_);
            start(killed);
            EXPECT_EQ(machine_.steering(file, "va"), "1");
        }
        machine_.rename_virtual("va", "vt");
        machine_.tree().file("sys/class/net/vt/queues/" + file, "4\n");
        Instance next(machine_);
        ASSERT_TRUE(next.manager().start());
        for (int pass = 0; pass < passes; ++pass)
            next.pass(pass > 0);
        EXPECT_EQ(machine_.steering(file, "vt"), "1");
        next.stop();
        EXPECT_EQ(machine_.steering(file, "vt"), "4");
        EXPECT_EQ(next.journal().size(), 0U);
        std::filesystem::remove(machine_.path("sys/class/net/vt"));
        std::filesystem::remove_all(machine_.path("sys/devices/virtual/net/vt"));
    }
}

TEST_F(Renames, TheRecordOfAnInterruptThatHasAnotherNumberByNowIsKept) {
    place_and_die();
    // The device has one more vector, which got the number of the second; that has a new one.
    machine_.free_handlers("eth0", 30);
    machine_.request_handlers("eth0", function, 30);
    std::filesystem::remove_all(machine_.path("proc/irq/31/eth0-TxRx-1"));
    machine_.tree().folder("proc/irq/31/eth0-TxRx-2");
    machine_.tree().file("sys/kernel/irq/31/actions", "eth0-TxRx-2\n");
    machine_.tree().folder("proc/irq/33/eth0-TxRx-1");
    machine_.tree().file("sys/kernel/irq/33/actions", "eth0-TxRx-1\n");
    machine_.tree().file("sys/devices/pci0000:00/0000:00:03.0/msi_irqs/33", "msix\n");
    auto text = machine_.all_of("proc/interrupts");
    text.replace(text.find("eth0-TxRx-1"), 11, "eth0-TxRx-2");
    machine_.tree().file("proc/interrupts",
                         text + " 33:  5 0 0 0  PCI-MSIX-0000:00:03.0  2-edge  eth0-TxRx-1\n");
    machine_.set_irq(31, "0-3");
    machine_.set_irq(33, "2"); // ours, which came along
    Instance next(machine_);
    start(next);
    next.stop();
    EXPECT_EQ(machine_.irq(31), "0-3");
    EXPECT_EQ(machine_.irq(33), "1-2");
}

TEST_F(Renames, QueuesOfVirtualInterfacesAreKnownByTheirIndex) {
    for (const bool is_killed : {true, false}) {
        machine_.add_virtual("va", 7);
        policy("v*", "0,2");
        auto daemon = std::make_unique<Instance>(machine_);
        start(*daemon);
        EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "va"), "1");
        machine_.rename_virtual("va", "vx");
        if (is_killed) {
            policy("v*", "1,3");
            daemon = std::make_unique<Instance>(machine_);
            start(*daemon);
            EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "vx"), "2");
        } else {
            daemon->manager().link_changed("vx");
            daemon->finish();
            daemon->pass();
            EXPECT_NE(machine_.steering("tx-0/xps_cpus", "vx"), "0");
        }
        daemon->stop();
        EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "vx"), "0") << is_killed;
        EXPECT_EQ(daemon->journal().size(), 0U);
        std::filesystem::remove(machine_.path("sys/class/net/vx"));
        std::filesystem::remove_all(machine_.path("sys/devices/virtual/net/vx"));
    }
}

TEST_F(Renames, QueuesOfAVirtualInterfaceThatNoPolicyWantsUnderItsNewNameArePutBack) {
    machine_.add_virtual("va", 7);
    policy("va", "0,2");
    Instance daemon(machine_);
    start(daemon);
    EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "va"), "1");
    machine_.rename_virtual("va", "vx");
    machine_.add_virtual("va", 8); // another takes the name
    machine_.tree().file("sys/class/net/va/queues/tx-0/xps_cpus", "4\n");
    no_policies();
    ASSERT_TRUE(daemon.reload());
    daemon.pass(true);
    EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "vx"), "0");
    EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "va"), "4");
}

TEST_F(Renames, OfInterruptsWhoseCpusWentKeepTheirOriginals) {
    for (const std::string stays : {"policy", "daemon", "nothing"}) {
        machine_.set_irq(31, "1-2");
        policy(stays == "daemon" ? "*0" : "eth0", "0,3");
        std::optional<Instance> daemon(std::in_place, machine_);
        start(*daemon);
        expect_irqs("0", "3");
        if (stays != "daemon") daemon.reset(); // killed
        machine_.tree().file("sys/devices/system/cpu/online", "0-2\n");
        machine_.set_irq(31, "0-2"); // the kernel
        rename("eth0", "lan0");
        if (stays == "policy") policy("lan0", "0,1");
        if (stays == "nothing") no_policies();
        if (daemon) {
            daemon->manager().expect_changes();
            daemon->pass(true);
        } else {
            daemon.emplace(machine_);
            start(*daemon);
        }
        daemon->stop();
        EXPECT_EQ(machine_.irq(31), "1-2") << stays;
        daemon.reset();
        machine_.tree().file("sys/devices/system/cpu/online", "0-3\n");
        rename("lan0", "eth0");
        machine_.set_irq(30, "0-3");
        for (const auto* file : {"undo.journal", "undo.journal.granted"})
            std::filesystem::remove(machine_.path(file));
        for (const auto* file : {"policies/nic.yaml", "policies/unrelated.yaml"})
            std::filesystem::remove(machine_.path(file));
    }
}

} // namespace
} // namespace affinityd::app

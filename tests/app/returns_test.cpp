// SPDX-License-Identifier: Apache-2.0
// Interrupts and queues that cannot be reached for a while get their originals back all the same.
#include "simulated.hpp"

#include <cerrno>

namespace affinityd::app {
namespace {

using test::Instance;
using test::Machine;

constexpr auto policy_text = "affinity: irq\nnics: [eth0]\ncpus: \"0,2\"\n";

class Returns : public testing::Test {
  protected:
    Returns() { machine_.policy("nic", policy_text); }
    /// As when a guest or another network namespace has the interface: its device stays.
    void take_away() const {
        std::filesystem::remove(machine_.path("sys/class/net/eth0"));
        std::filesystem::rename(machine_.path(device + "/net"), machine_.path(device + "/elsewhere"));
    }
    void bring_back() const {
        std::filesystem::rename(machine_.path(device + "/elsewhere"), machine_.path(device + "/net"));
        machine_.tree().link("sys/class/net/eth0", "../../devices/pci0000:00/0000:00:03.0/net/eth0");
    }
    void expect_originals() const {
        for (const unsigned irq : {30U, 31U})
            EXPECT_EQ(machine_.irq(irq), "0-3") << irq;
        for (const char* file : {"tx-0/xps_cpus", "tx-1/xps_cpus"})
            EXPECT_EQ(machine_.steering(file), "0") << file;
    }
    /// A daemon that has placed the interface's queues.
    void pass(Instance& daemon) const {
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
        EXPECT_EQ(machine_.irq(30), "0");
        EXPECT_EQ(machine_.irq(31), "2");
        EXPECT_NE(machine_.steering("tx-1/xps_cpus"), "0");
    }
    static inline const std::string device = "sys/devices/pci0000:00/0000:00:03.0";
    Machine machine_;
};

TEST_F(Returns, InterruptsWhoseHandlersAreFreedAreRestoredWhenTheDaemonStops) {
    Instance daemon(machine_);
    pass(daemon);
    machine_.free_handlers("eth0", 30);
    daemon.stop();
    expect_originals();
    EXPECT_EQ(daemon.journal().size(), 0U);
}

TEST_F(Returns, InterruptsWhoseHandlersAreFreedAreRestoredWhenThePolicyGoes) {
    Instance daemon(machine_);
    pass(daemon);
    machine_.free_handlers("eth0", 30);
    std::filesystem::remove_all(machine_.policies());
    machine_.tree().folder("policies");
    ASSERT_TRUE(daemon.reload());
    daemon.pass(true);
    expect_originals();
}

TEST_F(Returns, AfterTheLinkWasDownInterruptsArePlacedAgainAndRestoredInTheEnd) {
    Instance daemon(machine_);
    pass(daemon);
    machine_.free_handlers("eth0", 30);
    daemon.manager().link_changed("eth0");
    daemon.finish();
    daemon.pass(true);
    machine_.request_handlers("eth0", "0000:00:03.0", 30);
    daemon.manager().link_changed("eth0");
    daemon.finish();
    EXPECT_EQ(machine_.irq(30), "0");
    EXPECT_EQ(machine_.irq(31), "2");
    daemon.stop();
    expect_originals();
}

TEST_F(Returns, QueuesOfAnInterfaceThatIsElsewhereAreRestoredWhenItComesBack) {
    Instance daemon(machine_);
    pass(daemon);
    take_away();
    std::filesystem::remove_all(machine_.policies());
    machine_.tree().folder("policies");
    ASSERT_TRUE(daemon.reload());
    daemon.pass(true);
    bring_back();
    daemon.pass(true);
    expect_originals();
    EXPECT_EQ(daemon.journal().size(), 0U);
}

TEST_F(Returns, QueuesOfAnInterfaceThatIsElsewhereAreRestoredByTheNextDaemon) {
    {
        Instance daemon(machine_);
        pass(daemon);
        take_away();
        daemon.stop();
    }
    std::filesystem::remove_all(machine_.policies());
    machine_.tree().folder("policies");
    bring_back();
    Instance next(machine_);
    ASSERT_TRUE(next.manager().start());
    next.pass();
    expect_originals();
    EXPECT_EQ(next.journal().size(), 0U);
}

TEST_F(Returns, QueuesOfAnInterfaceThatIsElsewhereWhenItsPolicyIsReleasedAreRestoredWhenItComesBack) {
    Instance daemon(machine_);
    pass(daemon);
    take_away();
    daemon.manager().link_changed("eth0");
    daemon.finish();
    ASSERT_TRUE(daemon.release("nic"));
    daemon.finish();
    bring_back();
    daemon.manager().link_changed("eth0");
    daemon.finish();
    daemon.pass(true);
    expect_originals();
    EXPECT_EQ(daemon.journal().size(), 0U);
}

TEST_F(Returns, InterruptsThatAreBusyWhileTheirPolicyIsReleasedAreRestoredByTheNextPass) {
    Instance daemon(machine_);
    pass(daemon);
    for (const auto& entry : daemon.journal().queues())
        if (std::holds_alternative<machine::IrqMask>(entry.subject))
            daemon.enforcer().refuse_with[entry.subject] = EBUSY;
    ASSERT_TRUE(daemon.release("nic"));
    daemon.finish();
    EXPECT_EQ(machine_.irq(31), "2");
    daemon.enforcer().refuse_with.clear();
    daemon.pass(true);
    expect_originals();
    daemon.apply();
    daemon.finish();
    EXPECT_EQ(machine_.irq(31), "2") << "under policy again";
}

TEST_F(Returns, OurSteeringOnAVirtualInterfaceThatWasElsewhereIsNoOriginal) {
    machine_.add_virtual("va", 7);
    machine_.policy("nic", "affinity: irq\nnics: [va]\ncpus: \"0,2\"\n");
    Instance daemon(machine_);
    ASSERT_TRUE(daemon.manager().start());
    daemon.pass();
    EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "va"), "1");
    machine_.rename_virtual("va", "away");
    std::filesystem::remove(machine_.path("sys/class/net/away"));
    daemon.pass(true);
    EXPECT_EQ(daemon.journal().size(), 0U);
    std::filesystem::rename(machine_.path("sys/devices/virtual/net/away"),
                            machine_.path("sys/devices/virtual/net/va"));
    machine_.tree().link("sys/class/net/va", "../../devices/virtual/net/va");
    machine_.tree().file("sys/class/net/va/ifindex", "9\n"); // the kernel may give it another
    daemon.pass(true);
    EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "va"), "1");
    daemon.stop();
    EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "va"), "0");
}

TEST_F(Returns, RecordsOfADeviceThatWasUnpluggedAreForgotten) {
    Instance daemon(machine_);
    pass(daemon);
    std::filesystem::remove(machine_.path("sys/class/net/eth0"));
    for (const auto& gone : {device, std::string("proc/irq/30"), std::string("proc/irq/31")})
        std::filesystem::remove_all(machine_.path(gone));
    machine_.free_handlers("eth0", 30);
    daemon.pass(true);
    EXPECT_EQ(daemon.journal().size(), 0U);
}

TEST_F(Returns, ALineThatAnotherHandlerHasTakenIsLeftAlone) {
    Instance daemon(machine_);
    pass(daemon);
    machine_.free_handlers("eth0", 30);
    for (const char* number : {"30", "31"}) {
        machine_.tree().file(std::string("sys/kernel/irq/") + number + "/actions", "other\n");
        machine_.tree().folder(std::string("proc/irq/") + number + "/other");
    }
    daemon.stop();
    EXPECT_EQ(machine_.irq(30), "0");
}

} // namespace
} // namespace affinityd::app

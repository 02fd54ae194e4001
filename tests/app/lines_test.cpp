// SPDX-License-Identifier: Apache-2.0
// Interrupt lines that several devices share: one mask, one original, one who decides.
#include "simulated.hpp"

#include <algorithm>

namespace affinityd::app {
namespace {

using nlohmann::json;
using test::Instance;

constexpr unsigned line = 20;

class Lines : public testing::Test {
  protected:
    Lines() {
        machine_.add_nic_on_line("lan0", "0000:00:05.0", line);
        machine_.add_nic_on_line("lan1", "0000:00:06.0", line);
        machine_.set_irq(line, "1-3"); // an administrator's
    }
    void policy(const std::string& name, const std::string& nic, const std::string& cpus,
                const std::string& more = "") const {
        machine_.policy(name, "affinity: irq\nnics: [" + nic + "]\ncpus: \"" + cpus + "\"\n" + more);
    }
    void two_policies() const {
        policy("a", "lan0", "2");
        policy("b", "lan1", "3");
    }
    void start(Instance& daemon) const {
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
    }
    [[nodiscard]] static unsigned writes(Instance& daemon) {
        return static_cast<unsigned>(std::ranges::count_if(daemon.enforcer().done, [](const auto& subject) {
            const auto* irq = std::get_if<machine::IrqMask>(&subject);
            return irq != nullptr && irq->irq == line;
        }));
    }
    [[nodiscard]] static json queue_of(Instance& daemon, const std::string& nic) {
        const auto status = daemon.status();
        for (const auto& queue : status["queues"])
            if (queue["nic"] == nic && queue["kind"] == "irq") return queue;
        return nullptr;
    }
    test::Machine machine_;
};

TEST_F(Lines, ALineOfTwoInterfacesIsWrittenOnceAndTheFirstPolicyDecides) {
    two_policies();
    Instance daemon(machine_);
    start(daemon);
    EXPECT_EQ(machine_.irq(line), "2");
    for (int pass = 0; pass < 5; ++pass)
        daemon.pass(true);
    EXPECT_EQ(writes(daemon), 1U);
    daemon.stop();
    EXPECT_EQ(machine_.irq(line), "1-3");
    EXPECT_EQ(writes(daemon), 2U);
    EXPECT_EQ(daemon.journal().size(), 0U);
}

TEST_F(Lines, ThePoliciesOrderDecidesAndNotTheInterfaces) {
    policy("a", "lan1", "3");
    policy("b", "lan0", "2");
    Instance daemon(machine_);
    start(daemon);
    EXPECT_EQ(machine_.irq(line), "3");
}

TEST_F(Lines, BothInterfacesAreToldOfTheOtherAndTheLoserOfWhoDecides) {
    two_policies();
    machine_.add_handler(line, "ehci_hcd:usb1");
    Instance daemon(machine_);
    start(daemon);
    const auto first = queue_of(daemon, "lan0");
    const auto second = queue_of(daemon, "lan1");
    EXPECT_EQ(first["shared_with"], "lan1 of policy b, ehci_hcd:usb1");
    EXPECT_EQ(second["shared_with"], "lan0 of policy a, ehci_hcd:usb1");
    EXPECT_FALSE(first.contains("note"));
    EXPECT_EQ(second["note"], "one line with lan0 of policy a, which decides");
    EXPECT_EQ(second["present"], "2");
    EXPECT_EQ(second["original"], "1-3");
    EXPECT_EQ(daemon.explain("lan1")["queues"][0]["shared_with"], "lan0 of policy a, ehci_hcd:usb1");
    EXPECT_EQ(daemon.explain("irq:20")["queues"].size(), 2U);
    const auto problems = daemon.status()["problems"];
    ASSERT_EQ(problems.size(), 1U) << problems.dump();
    EXPECT_EQ(problems[0]["policy"], "b");
    EXPECT_EQ(problems[0]["subject"], "lan1");
    EXPECT_EQ(problems[0]["message"],
              "its interrupt 20 is shared with lan0 of policy a, which comes first: it "
              "is on CPU 2 and not on CPU 3");
    EXPECT_EQ(daemon.plan()["actions"], json::array());
}

TEST_F(Lines, OnePolicyForBothIsNoProblem) {
    policy("a", "lan0, lan1", "2-3");
    Instance daemon(machine_);
    start(daemon);
    daemon.pass(true);
    EXPECT_EQ(writes(daemon), 1U);
    EXPECT_EQ(daemon.status()["problems"], json::array());
    EXPECT_EQ(queue_of(daemon, "lan0")["shared_with"], "lan1 of policy a");
}

TEST_F(Lines, ALineSharedWithAnotherDeviceIsOneLineAndSaysSo) {
    machine_.remove_handler(line, "lan1");
    machine_.add_handler(line, "ahci[0000:00:1f.2]");
    policy("a", "lan0", "2");
    Instance daemon(machine_);
    start(daemon);
    EXPECT_EQ(machine_.irq(line), "2");
    EXPECT_EQ(queue_of(daemon, "lan0")["shared_with"], "ahci[0000:00:1f.2]");
    daemon.stop();
    EXPECT_EQ(machine_.irq(line), "1-3");
}

TEST_F(Lines, HandlersThatComeAndGoCostNoOriginal) {
    two_policies();
    Instance daemon(machine_);
    start(daemon);
    const auto change = [&](bool is_added, const std::string& label) {
        is_added ? machine_.add_handler(line, label) : machine_.remove_handler(line, label);
        daemon.manager().link_changed(label);
        daemon.finish();
        daemon.pass(true);
        EXPECT_LE(daemon.journal().queues("").size(), 1U);
        const auto entries = daemon.journal().queues();
        const auto lines = std::ranges::count_if(entries, [](const auto& entry) {
            return std::holds_alternative<machine::IrqMask>(entry.subject);
        });
        EXPECT_EQ(lines, 1) << label << is_added;
    };
    change(false, "lan0");
    EXPECT_EQ(machine_.irq(line), "3") << "the interface that is in use decides";
    change(true, "ehci_hcd:usb1");
    change(true, "lan0");
    EXPECT_EQ(machine_.irq(line), "2");
    change(false, "lan1");
    EXPECT_EQ(machine_.irq(line), "2");
    daemon.stop();
    EXPECT_EQ(machine_.irq(line), "1-3");
}

TEST_F(Lines, AnotherDevicesHandlerIsNotTakenForThatOfAnInterfaceThatIsDown) {
    machine_.remove_handler(line, "lan0");
    machine_.remove_handler(line, "lan1");
    for (const auto* label : {"ohci_hcd:usb1", "lan0", "lan1"})
        machine_.add_handler(line, label);
    two_policies();
    Instance daemon(machine_);
    start(daemon);
    EXPECT_EQ(machine_.irq(line), "2");
    machine_.remove_handler(line, "lan0");
    machine_.tree().file("sys/class/net/lan0/flags", "0x1002\n");
    daemon.manager().link_changed("lan0");
    daemon.finish();
    daemon.pass(true);
    EXPECT_EQ(machine_.irq(line), "3");
    daemon.stop();
    EXPECT_EQ(machine_.irq(line), "1-3");
}

TEST_F(Lines, ADaemonThatStartsWithOneHandlerGoneKnowsTheLine) {
    two_policies();
    {
        Instance killed(machine_);
        start(killed);
    }
    machine_.remove_handler(line, "lan0");
    Instance next(machine_);
    start(next);
    next.stop();
    EXPECT_EQ(machine_.irq(line), "1-3");
    EXPECT_EQ(next.journal().size(), 0U);
}

TEST_F(Lines, TheOriginalIsPutBackThoughOneInterfaceIsUnpluggedAndTheOtherDown) {
    two_policies();
    Instance daemon(machine_);
    start(daemon);
    std::filesystem::remove(machine_.path("sys/class/net/lan0"));
    std::filesystem::remove_all(machine_.path("sys/devices/pci0000:00/0000:00:05.0"));
    machine_.remove_handler(line, "lan0");
    machine_.remove_handler(line, "lan1");
    daemon.stop();
    EXPECT_EQ(machine_.irq(line), "1-3");
    EXPECT_EQ(daemon.journal().size(), 0U);
}

TEST_F(Lines, WhereTheDecidersPolicyIsReleasedTheOtherDecides) {
    two_policies();
    Instance daemon(machine_);
    start(daemon);
    ASSERT_TRUE(daemon.release("a"));
    daemon.finish();
    daemon.pass();
    EXPECT_EQ(machine_.irq(line), "3");
    EXPECT_FALSE(queue_of(daemon, "lan1").contains("note"));
    daemon.apply();
    daemon.finish();
    EXPECT_EQ(machine_.irq(line), "2");
    daemon.stop();
    EXPECT_EQ(machine_.irq(line), "1-3");
}

TEST_F(Lines, AnInterfaceThatGetsAnotherLineLeavesTheFirstAsItWas) {
    machine_.remove_handler(line, "lan1");
    policy("a", "lan0", "2");
    Instance daemon(machine_);
    start(daemon);
    machine_.remove_handler(line, "lan0"); // probed again, without a reboot
    machine_.tree().file("sys/devices/pci0000:00/0000:00:05.0/irq", "21\n");
    machine_.set_irq(21, "0-1");
    machine_.add_handler(21, "lan0");
    daemon.pass(true);
    EXPECT_EQ(machine_.irq(line), "1-3");
    EXPECT_EQ(machine_.irq(21), "2");
    daemon.stop();
    EXPECT_EQ(machine_.irq(line), "1-3");
    EXPECT_EQ(machine_.irq(21), "0-1");
}

/// An interrupt of eth0's own gets a second handler, and loses it again.
class OwnLines : public Lines {
  protected:
    OwnLines() {
        machine_.set_irq(30, "1-2");
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0\"\n");
        machine_.tree().file("sys/kernel/irq/30/chip_name", "GIC\n");
    }
    void share() {
        auto text = machine_.all_of("proc/interrupts");
        text.insert(text.find(own) + own.size(), ", other");
        machine_.tree().file("proc/interrupts", text);
        machine_.tree().folder("proc/irq/30/other");
        machine_.tree().file("sys/kernel/irq/30/actions", own + ",other\n");
    }
    void share_no_more() {
        auto text = machine_.all_of("proc/interrupts");
        text.erase(text.find(", other"), 7);
        machine_.tree().file("proc/interrupts", text);
        std::filesystem::remove(machine_.path("proc/irq/30/other"));
        machine_.tree().file("sys/kernel/irq/30/actions", own + "\n");
    }
    void place_on(Instance& daemon, const std::string& cpus) const {
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"" + cpus + "\"\n");
        ASSERT_TRUE(daemon.reload());
        daemon.finish();
        daemon.pass(true);
        EXPECT_EQ(machine_.irq(30), cpus);
    }
    static inline const std::string own = "eth0-TxRx-0";
};

TEST_F(OwnLines, GetTheirOriginalsThoughTheyAreSharedByThenAndPlacedElsewhere) {
    Instance daemon(machine_);
    start(daemon);
    EXPECT_EQ(machine_.irq(30), "0");
    share();
    place_on(daemon, "2");
    daemon.stop();
    EXPECT_EQ(machine_.irq(30), "1-2");
    EXPECT_EQ(daemon.journal().size(), 0U);
}

TEST_F(OwnLines, GetTheirOriginalsThoughTheyWereSharedForAWhile) {
    share();
    {
        Instance killed(machine_);
        start(killed);
        EXPECT_EQ(machine_.irq(30), "0");
    }
    share_no_more();
    Instance daemon(machine_);
    start(daemon);
    place_on(daemon, "2");
    daemon.stop();
    EXPECT_EQ(machine_.irq(30), "1-2");
    EXPECT_EQ(daemon.journal().size(), 0U);
}

TEST_F(OwnLines, AreStillKnownAsOursWhenTheyAreSharedByThenAndTheJournalIsLost) {
    machine_.tree().file("proc/irq/default_smp_affinity", "f\n");
    {
        Instance killed(machine_);
        start(killed);
    }
    share();
    std::filesystem::remove(machine_.path("undo.journal"));
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"2\"\n");
    Instance daemon(machine_);
    start(daemon);
    EXPECT_EQ(machine_.irq(30), "2");
    daemon.stop();
    EXPECT_EQ(machine_.irq(30), "0-3") << "the kernel's default";
}

TEST_F(Lines, ThreadsOfASharedLineGoWhereTheDecidersDo) {
    constexpr unsigned kernel = 0x00200000; // PF_KTHREAD
    machine_.process(50, "irq/20-lan0", "0-3", 2, kernel);
    machine_.process(51, "irq/20-lan1", "0-3", 2, kernel);
    two_policies();
    Instance daemon(machine_);
    start(daemon);
    EXPECT_EQ(machine_.allowed(50, 50), "2");
    EXPECT_EQ(machine_.allowed(51, 51), "2");
}

} // namespace
} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
// Interrupts that somebody else moved are found without a pass.
#include "app/interrupt_glance.hpp"
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using test::Instance;
using test::Machine;

class Glance : public testing::Test {
  protected:
    Glance() {
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,2\"\n");
        EXPECT_TRUE(daemon_.manager().start());
        daemon_.pass();
        EXPECT_EQ(machine_.irq(30), "0");
        EXPECT_EQ(machine_.irq(31), "2");
    }
    /// True if something was found.
    bool glance() {
        bool has_found = false;
        InterruptGlance job(daemon_.manager().queues(), [&] { has_found = true; });
        while (!job.step([] { return true; })) {
        }
        return has_found;
    }
    Machine machine_;
    Instance daemon_{machine_};
};

TEST_F(Glance, PutsAMovedInterruptRightAndNoOther) {
    machine_.set_irq(31, "0-3");
    const auto before = daemon_.enforcer().applied;
    EXPECT_TRUE(glance());
    EXPECT_EQ(machine_.irq(31), "2");
    EXPECT_EQ(daemon_.enforcer().applied, before + 1);
    EXPECT_FALSE(glance());
}

TEST_F(Glance, ReadsNothingButMasksWhereNothingHasChanged) {
    const auto read = daemon_.enforcer().read;
    EXPECT_FALSE(glance());
    EXPECT_EQ(daemon_.enforcer().read, read);
}

TEST_F(Glance, LeavesReleasedInterruptsAlone) {
    ASSERT_TRUE(daemon_.release("nic"));
    machine_.set_irq(31, "1");
    EXPECT_FALSE(glance());
    EXPECT_EQ(machine_.irq(31), "1");
}

TEST_F(Glance, AFightIsGivenUpAndAskedForNoPass) {
    for (unsigned i = 0; i < 5; ++i) {
        machine_.set_irq(31, "1");
        EXPECT_TRUE(glance()) << i;
    }
    machine_.set_irq(31, "1");
    EXPECT_FALSE(glance());
    EXPECT_EQ(machine_.irq(31), "1") << "left alone for a while";
}

TEST_F(Glance, ANumberThatAnotherDeviceHasNowIsLeftToIt) {
    machine_.free_handlers("eth0", 30);
    std::filesystem::remove_all(machine_.path("sys/devices/pci0000:00/0000:00:03.0/msi_irqs"));
    machine_.set_irq(31, "1");
    EXPECT_FALSE(glance());
    EXPECT_EQ(machine_.irq(31), "1");
}

TEST_F(Glance, InterruptsThatAreGoneAreNoFinding) {
    std::filesystem::remove_all(machine_.path("proc/irq"));
    EXPECT_FALSE(glance());
}

TEST_F(Glance, EndsWhereAReloadHasReplacedThePolicies) {
    bool has_found = false;
    InterruptGlance job(daemon_.manager().queues(), [&] { has_found = true; });
    ASSERT_TRUE(daemon_.reload());
    EXPECT_TRUE(job.step([] { return true; }));
    EXPECT_FALSE(has_found);
}

TEST_F(Glance, OnlyInterruptsUnderPolicyCallForIt) {
    EXPECT_TRUE(daemon_.manager().queues().guards_interrupts());
    Instance dry_run(machine_, false);
    ASSERT_TRUE(dry_run.manager().start());
    EXPECT_FALSE(dry_run.manager().queues().guards_interrupts()) << "what is not set need not be guarded";
    machine_.policy("nic", "match: {comm: nginx}\ncpus: \"0,2\"\n");
    ASSERT_TRUE(daemon_.reload());
    EXPECT_FALSE(daemon_.manager().queues().guards_interrupts());
}

/// What an event of a program's start asks for.
class Starts : public Glance {
  protected:
    Starts() {
        daemon_.manager().work().on_work([this](Work::Urgency urgency) {
            if (urgency == Work::Urgency::soon) ++passes_;
        });
    }
    /// A program of this name and user starts.
    void start(const std::string& comm, const std::string& uid) {
        machine_.process(500, comm);
        machine_.tree().file("proc/500/status",
                             fmt::format("Name:\t{0}\nTgid:\t500\nUid:\t{1}\t{1}\t{1}\t{1}\n", comm, uid));
        daemon_.manager().tasks().process_changed(500);
    }
    unsigned passes_ = 0; ///< asked for
};

TEST_F(Starts, IrqbalanceIsMetAtOnce) {
    start("irqbalance", "0");
    EXPECT_EQ(passes_, 1U);
    daemon_.pass();
    const auto asked = passes_;
    daemon_.manager().tasks().process_changed(500);
    EXPECT_EQ(passes_, asked) << "it is known";
}

TEST_F(Starts, AnybodyMayCallAProgramSo) {
    start("irqbalance", "65534");
    EXPECT_EQ(passes_, 0U);
}

TEST_F(Starts, OtherProgramsAskForNoPass) {
    start("sshd", "0");
    EXPECT_EQ(passes_, 0U);
}

TEST_F(Starts, WithoutInterruptsUnderPolicyNobodyNeedsToBeMet) {
    machine_.policy("nic", "match: {comm: nginx}\ncpus: \"0,2\"\n");
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    const auto asked = passes_;
    start("irqbalance", "0");
    EXPECT_EQ(passes_, asked);
}

} // namespace
} // namespace affinityd::app

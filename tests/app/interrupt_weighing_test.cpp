// SPDX-License-Identifier: Apache-2.0
// Interrupts weigh what they take, in place of one CPU each.
#include "app/interrupt_weighing.hpp"
#include "simulated.hpp"

#include <thread>

namespace affinityd::app {
namespace {

using planner::one_cpu;
using test::Instance;
using test::Machine;

/// Two queues, on CPUs 0 and 2. That of CPU 0 keeps its CPU busy, the other one is quiet.
class InterruptWeighingTest : public testing::Test {
  protected:
    InterruptWeighingTest() {
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,2\"\n");
        machine_.policy("app", "match: {comm: app}\ncpus: \"0,2\"\nbind: cpu\n");
        EXPECT_TRUE(daemon_.manager().start());
        daemon_.pass();
        EXPECT_EQ(machine_.irq(30), "0");
        EXPECT_EQ(machine_.irq(31), "2");
    }
    void stat(unsigned busy) const {
        std::string text = "cpu 0 0 0 0 0 0 0 0\n";
        for (unsigned cpu = 0; cpu < 4; ++cpu)
            text += fmt::format("cpu{} 0 0 0 0 0 0 {} 0\n", cpu, cpu == 0 ? busy : 0);
        machine_.tree().file("proc/stat", text);
    }
    void weigh() {
        const auto root = host::Root::open(machine_.path());
        InterruptWeighing weighing(*root, current());
        stat(0);
        weighing.weigh();
        std::this_thread::sleep_for(std::chrono::milliseconds(1100));
        stat(1'000'000); // more than there can be
        weighing.weigh();
    }
    [[nodiscard]] const Current& current() { return daemon_.manager().queues().current(); }
    [[nodiscard]] planner::Weight load(unsigned cpu) { return current().placements().load->on_cpu(cpu); }
    Machine machine_;
    Instance daemon_{machine_};
};

TEST_F(InterruptWeighingTest, CpusWithInterruptsWeighWhatTheySpendInThem) {
    EXPECT_EQ(load(0), one_cpu);
    EXPECT_EQ(load(2), one_cpu) << "nothing is known yet";
    weigh();
    EXPECT_EQ(load(0), one_cpu);
    EXPECT_EQ(load(2), 0);
    EXPECT_EQ(load(1), 0);
}

TEST_F(InterruptWeighingTest, ATaskGoesToTheCoreOfAQuietQueue) {
    weigh();
    machine_.process(10, "app");
    daemon_.tasks().process_changed(10);
    EXPECT_EQ(machine_.allowed(10, 10), "2");
}

TEST_F(InterruptWeighingTest, WhatWasMeasuredOutlivesAReload) {
    weigh();
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    EXPECT_EQ(load(2), 0);
    EXPECT_EQ(machine_.irq(31), "2") << "lanes stay";
}

TEST_F(InterruptWeighingTest, ACpuThatGetsItsFirstInterruptWeighsOneCpu) {
    weigh();
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"1,2\"\n");
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    EXPECT_EQ(load(0), 0) << "it has none any more";
    EXPECT_EQ(load(1), one_cpu);
    EXPECT_EQ(load(2), 0);
}

TEST_F(InterruptWeighingTest, WithoutFiguresNothingChanges) {
    const auto root = host::Root::open(machine_.path());
    InterruptWeighing weighing(*root, current());
    weighing.weigh();
    machine_.tree().file("proc/stat", "nonsense\n");
    weighing.weigh();
    EXPECT_EQ(load(2), one_cpu);
}

} // namespace
} // namespace affinityd::app

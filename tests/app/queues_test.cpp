// SPDX-License-Identifier: Apache-2.0
// What the kernel may answer to a change of an interrupt, one after the other, and what becomes of it.
#include "simulated.hpp"

#include <algorithm>
#include <cstring>

namespace affinityd::app {
namespace {

using enforcer::Outcome;
using nlohmann::json;
using test::Instance;

constexpr const char* first = "IRQ 30 (eth0-TxRx-0)";
const machine::IrqMask irq_30{"devices/pci0000:00/0000:00:03.0", "eth0-TxRx-0", 0, 30};

class QueuesTest : public testing::Test {
  protected:
    QueuesTest() { machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,2\"\n"); }

    static json queue(const json& status, unsigned irq) {
        for (const auto& queue : status["queues"])
            if (queue["kind"] == "irq" && queue["irq"] == irq) return queue;
        return nullptr;
    }

    test::Machine machine_;
};

struct Answer {
    int code;
    Outcome outcome;
    bool asked_again; ///< with the next pass
};

class Answers : public QueuesTest, public testing::WithParamInterface<Answer> {};

TEST_P(Answers, AreLoggedOnceAndAskedAgainOnlyIfThatMayHelp) {
    const auto& [code, outcome, asked_again] = GetParam();
    EXPECT_EQ(enforcer::irq_outcome(code), outcome);
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.enforcer().refuse_with = {{irq_30, code}};
    instance.pass();
    EXPECT_EQ(machine_.irq(30), "0-3");
    EXPECT_NE(machine_.irq(31), "0-3") << "the other queue is placed";
    const auto refused = instance.status()["refused"];
    ASSERT_TRUE(refused.contains(first)) << refused.dump();
    EXPECT_NE(refused[first].get<std::string>().find(to_string(outcome)), std::string::npos);
    EXPECT_NE(refused[first].get<std::string>().find(std::strerror(code)), std::string::npos);
    EXPECT_FALSE(instance.journal().contains(irq_30)) << "what was not done is not undone";

    const auto before = instance.enforcer().applied;
    instance.pass(true);
    instance.pass(true);
    EXPECT_EQ(instance.enforcer().applied > before, asked_again);
    EXPECT_EQ(instance.log().times("could not be moved"), 1U) << instance.log().text();
    EXPECT_EQ(instance.plan()["actions"].empty(), !asked_again) << instance.plan().dump();

    instance.enforcer().refuse_with.clear();
    instance.pass(true);
    EXPECT_EQ(machine_.irq(30) != "0-3", asked_again);
    EXPECT_EQ(instance.status()["refused"].empty(), asked_again);
    instance.stop();
    EXPECT_EQ(machine_.irq(30), "0-3");
    EXPECT_EQ(machine_.irq(31), "0-3");
}

INSTANTIATE_TEST_SUITE_P(
    Errno, Answers,
    testing::Values(Answer{EIO, Outcome::immovable, false}, Answer{EPERM, Outcome::immovable, false},
                    Answer{EINVAL, Outcome::no_cpu, true}, Answer{EOVERFLOW, Outcome::no_cpu, true},
                    Answer{EAGAIN, Outcome::busy, true}, Answer{EBUSY, Outcome::busy, true},
                    Answer{EACCES, Outcome::not_permitted, true}, Answer{ENODEV, Outcome::failed, true}));

TEST_F(QueuesTest, AFullCpuIsPassedOverForTheNearestAndApplyTriesItAgain) {
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0-2\"\n"); // cores 0-1 and 2-3
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.enforcer().full = CpuSet{0};
    instance.pass();
    EXPECT_EQ(machine_.irq(30), "1") << "the sibling of CPU 0";
    EXPECT_EQ(machine_.irq(31), "2");
    EXPECT_EQ(instance.log().times("CPU 0 has no interrupt vector left, so it is on CPU 1"), 1U)
        << instance.log().text();
    const auto told = queue(instance.status(), 30);
    EXPECT_EQ(told["wanted"], "0");
    EXPECT_EQ(told["present"], "1");
    EXPECT_EQ(told["original"], "0-3");
    EXPECT_EQ(told["note"], "CPU 0 has no interrupt vector left: on CPU 1 instead");
    EXPECT_EQ(instance.status()["refused"], json::object());
    EXPECT_EQ(instance.plan()["actions"], json::array());

    const auto before = instance.enforcer().applied;
    instance.pass(true);
    EXPECT_EQ(instance.enforcer().applied, before) << "it stays there for a while";
    instance.enforcer().full = {};
    instance.apply();
    instance.finish();
    EXPECT_EQ(machine_.irq(30), "0") << "who asks for everything anew gets it";
    instance.stop();
    EXPECT_EQ(machine_.irq(30), "0-3");
}

TEST_F(QueuesTest, WithoutAnyVectorAnInterruptStaysWhereItIs) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.enforcer().full = *CpuSet::parse_list("0-3");
    instance.pass();
    EXPECT_EQ(machine_.irq(30), "0-3");
    EXPECT_EQ(instance.status()["refused"].size(), 2U);
    EXPECT_EQ(instance.enforcer().applied, 6U)
        << "each CPU of the policy was asked for both, no other; and two steering maps";
    EXPECT_EQ(instance.journal().size(), 2U) << "the steering maps";
    instance.enforcer().full = {};
    instance.pass(true);
    EXPECT_EQ(machine_.irq(30), "0");
}

TEST_F(QueuesTest, AFightOverAnInterruptIsLeftUntilApply) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    for (int round = 0; round < 5; ++round) {
        EXPECT_EQ(machine_.irq(30), "0") << round;
        machine_.set_irq(30, "3");
        instance.pass(true);
    }
    EXPECT_EQ(machine_.irq(30), "0") << "put right once more";
    machine_.set_irq(30, "3");
    instance.pass(true);
    EXPECT_EQ(machine_.irq(30), "3");
    EXPECT_EQ(instance.log().times("somebody else keeps changing its mask"), 1U) << instance.log().text();
    EXPECT_NE(queue(instance.status(), 30)["note"].get<std::string>().find("fought over"), std::string::npos);
    instance.apply();
    instance.finish();
    EXPECT_EQ(machine_.irq(30), "0");
}

TEST_F(QueuesTest, WhatDriversDoToTheirQueuesIsPutRightAndNoFight) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    for (int round = 0; round < 20; ++round) { // a link that goes down and up
        machine_.set_irq(30, "0-3");
        instance.manager().expect_changes();
        instance.pass(true);
        ASSERT_EQ(machine_.irq(30), "0") << round;
    }
}

TEST_F(QueuesTest, ThreadsOfInterruptsAreOnTheirCpusUntilThePolicyGoes) {
    constexpr unsigned kernel = 0x00200000; // PF_KTHREAD
    machine_.tree().file("sys/devices/pci0000:00/0000:00:03.0/net/eth0/threaded", "1\n");
    machine_.process(50, "irq/30-eth0-TxRx-0", "0-3", 2, kernel);
    machine_.process(51, "irq/31-eth0-TxRx-1", "0-3", 2, kernel);
    machine_.process(52, "irq/31-eth0-TxRx-1"); // a program that took the name
    machine_.process(60, "napi/eth0-8194", "0-3", 2, kernel);
    machine_.process(61, "napi/eth0-8193", "0-3", 2, kernel); // the first queue's: made first
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(machine_.irq(30), "0");
    EXPECT_EQ(machine_.allowed(50, 50), "0");
    EXPECT_EQ(machine_.allowed(61, 61), "0");
    EXPECT_EQ(machine_.irq(31), "2");
    EXPECT_EQ(machine_.allowed(51, 51), "2");
    EXPECT_EQ(machine_.allowed(60, 60), "2");
    EXPECT_EQ(machine_.allowed(52, 52), "0-3");
    std::filesystem::remove(machine_.path("policies/nic.yaml"));
    ASSERT_TRUE(instance.reload());
    instance.finish();
    for (const int pid : {50, 51, 60, 61})
        EXPECT_EQ(machine_.allowed(pid, pid), "0-3") << pid << ": its policy has gone";
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,2\"\n");
    ASSERT_TRUE(instance.reload());
    instance.finish();
    EXPECT_EQ(machine_.allowed(50, 50), "0");
    instance.stop();
    for (const int pid : {50, 51, 60, 61})
        EXPECT_EQ(machine_.allowed(pid, pid), "0-3") << pid;
}

TEST_F(QueuesTest, FlowsAreSteeredWhereOneQueueServesManyAndPutBackWhereStillOurs) {
    machine_.policy("nic", "match: {comm: server}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\n");
    std::filesystem::remove_all(machine_.path("sys/devices/pci0000:00/0000:00:03.0/net/eth0/queues/rx-1"));
    machine_.tree().file("sys/devices/pci0000:00/0000:00:03.0/net/eth0/queues/rx-0/rps_flow_cnt", "0\n");
    machine_.tree().file("proc/sys/net/core/rps_sock_flow_entries", "4096\n");
    machine_.process(10, "server");
    machine_.thread(10, 11, "worker", "0-3", 1, 0, 101);
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    instance.pass();
    EXPECT_EQ(machine_.steering("rx-0/rps_cpus"), CpuSet::range(0, 3).to_mask()) << instance.status().dump();
    EXPECT_EQ(machine_.steering("rx-0/rps_flow_cnt"), "32768");
    EXPECT_EQ(machine_.text("proc/sys/net/core/rps_sock_flow_entries"), "32768");
    EXPECT_EQ(instance.plan()["actions"], json::array());
    const auto status = instance.status();
    const auto flows = std::ranges::find_if(
        status["queues"], [](const json& queue) { return queue.value("queue", "") == "rx-0-flows"; });
    ASSERT_NE(flows, status["queues"].end());
    EXPECT_EQ((*flows)["wanted"], "32768");
    EXPECT_EQ((*flows)["original"], "0");
    machine_.tree().file("proc/sys/net/core/rps_sock_flow_entries", "65536\n"); // somebody else wants more
    instance.stop();
    EXPECT_EQ(machine_.steering("rx-0/rps_flow_cnt"), "0");
    EXPECT_EQ(machine_.text("proc/sys/net/core/rps_sock_flow_entries"), "65536") << "no longer ours";
}

class LinkTest : public QueuesTest {
  protected:
    LinkTest() {
        machine_.add_nic("eth1", "0000:00:04.0", 40);
        machine_.policy("nic", "affinity: irq\nnics: [eth0, eth1]\ncpus: \"0,2\"\n");
        machine_.policy("server", "match: {comm: server}\ncpus: \"3\"\nbind: set\n");
        for (int pid = 100; pid < 150; ++pid)
            machine_.process(pid, "server");
    }
    /// Drivers have reset all masks.
    void reset() const {
        for (const unsigned irq : {30U, 31U, 40U, 41U})
            machine_.set_irq(irq, "0-3");
    }
    /// The interface disappears from sysfs; its interrupts stay, as they do while a driver is busy with it.
    void hide(const std::string& nic) const {
        std::filesystem::remove(machine_.path("sys/class/net/" + nic));
    }
    void show(const std::string& nic, const std::string& function) const {
        machine_.tree().link("sys/class/net/" + nic, "../../devices/pci0000:00/" + function + "/net/" + nic);
    }
    void show_all() const {
        if (!std::filesystem::exists(machine_.path("sys/class/net/eth0"))) show("eth0", "0000:00:03.0");
        reset();
    }
    /// How many of the changes so far were of tasks.
    static std::size_t tasks(Instance& instance) {
        return static_cast<std::size_t>(std::ranges::count_if(instance.enforcer().done, is_task));
    }
    static bool is_task(const planner::Subject& subject) {
        return std::holds_alternative<planner::TaskMask>(subject);
    }
};

TEST_F(LinkTest, QueuesOfAChangedInterfaceArePutRightBeforeAnyTaskAndNoOthers) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    reset();
    const auto before = instance.enforcer().done.size();
    for (int pid = 100; pid < 150; ++pid)
        machine_.process(pid, "server"); // they would need a change, too
    instance.manager().link_changed("eth0");
    instance.finish();
    EXPECT_EQ(machine_.irq(30), "0");
    EXPECT_EQ(machine_.irq(31), "2");
    EXPECT_EQ(machine_.irq(40), "0-3");
    EXPECT_EQ(machine_.irq(41), "0-3");
    EXPECT_EQ(instance.enforcer().done.size(), before + 2) << "nothing else was touched";
    instance.pass();
    EXPECT_EQ(machine_.irq(40) == "0-3" || machine_.irq(41) == "0-3", false) << "the pass sees to the others";
}

TEST_F(LinkTest, OriginalsOfOtherInterfacesAreLeftToThePass) {
    machine_.policy("nic", "affinity: irq\nnics: [eth1]\ncpus: \"0,2\"\n");
    {
        Instance crashed(machine_);
        ASSERT_TRUE(crashed.manager().start());
        crashed.pass();
    }
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,2\"\n");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.manager().link_changed("eth0");
    instance.finish();
    EXPECT_EQ(machine_.irq(30), "0");
    EXPECT_EQ(machine_.irq(40), "0") << "no policy wants it any more, but that is no business of eth0's";
    instance.pass();
    EXPECT_EQ(machine_.irq(40), "0-3");
}

TEST_F(LinkTest, DuringAPassQueuesOfAChangedInterfaceComeNext) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    reset();
    for (int pid = 100; pid < 150; ++pid)
        machine_.process(pid, "server");
    const auto begin = instance.enforcer().done.size();
    instance.manager().begin_pass(false);
    while (instance.enforcer().done.size() < begin + 3)
        instance.short_step();
    const auto before = instance.enforcer().done.size();
    instance.manager().link_changed("eth0");
    while (instance.enforcer().done.size() < before + 3)
        instance.short_step();
    const auto& done = instance.enforcer().done;
    EXPECT_FALSE(is_task(done[before]));
    EXPECT_FALSE(is_task(done[before + 1]));
    EXPECT_TRUE(is_task(done[before + 2])) << "and then the pass goes on";
    EXPECT_EQ(machine_.irq(30), "0");
    instance.finish();
}

TEST_F(LinkTest, AnInterfaceThatWentLeavesTheQueuesOfOthersAlone) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    std::filesystem::remove(machine_.path("sys/class/net/eth0"));
    for (const char* gone : {"sys/devices/pci0000:00/0000:00:03.0", "proc/irq/30", "proc/irq/31"})
        std::filesystem::remove_all(machine_.path(gone));
    const auto before = instance.enforcer().applied;
    instance.manager().link_changed("eth0");
    instance.finish();
    EXPECT_EQ(instance.enforcer().applied, before);
    EXPECT_NE(machine_.irq(40), "0-3");
    instance.pass(true);
    EXPECT_NE(machine_.irq(40), "0-3");
}

TEST_F(LinkTest, WhenAnInterfaceGoesDuringARoundNoQueueOfAnotherIsPassedOver) {
    for (unsigned before = 1; before <= 4; ++before) { // how many queues the round has come to
        show_all();
        Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        instance.manager().begin_pass(false);
        const auto come_to = [&] { return instance.enforcer().done.size() - tasks(instance); };
        while (come_to() < before && !instance.short_step()) {
        }
        ASSERT_EQ(come_to(), before);
        ASSERT_EQ(machine_.irq(41), "0-3") << "the round is not over";
        hide("eth0");
        instance.manager().link_changed("eth0");
        instance.finish();
        EXPECT_EQ(machine_.irq(40), "0") << before;
        EXPECT_EQ(machine_.irq(41), "2") << before;
        instance.stop();
    }
}

TEST_F(LinkTest, OriginalsAreNoLongerRestoredOnceTheInterfaceIsBack) {
    for (unsigned before = 1; before <= 2; ++before) { // how many originals were restored by then
        Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        instance.pass();
        const auto irqs = [&] { return machine_.irq(30) + " and " + machine_.irq(31); };
        ASSERT_EQ(irqs(), "0 and 2");
        hide("eth0");
        const auto begin = instance.enforcer().done.size();
        instance.manager().begin_pass(true);
        while (instance.enforcer().done.size() < begin + before && !instance.short_step()) {
        }
        ASSERT_EQ(instance.enforcer().done.size(), begin + before) << "no policy wants them now";
        show("eth0", "0000:00:03.0");
        instance.manager().link_changed("eth0");
        instance.finish();
        EXPECT_EQ(irqs(), "0 and 2") << before;
        EXPECT_EQ(instance.enforcer().done.size(), begin + 2 * before)
            << "those are set again, and that is all";
        EXPECT_EQ(instance.plan()["actions"], json::array()) << before;
        instance.stop();
        ASSERT_EQ(irqs(), "0-3 and 0-3");
    }
}

TEST_F(LinkTest, ARoundEndsAlthoughAnInterfaceThatNobodyNamesChangesAllTheTime) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.manager().begin_pass(false);
    unsigned slices = 0;
    for (; slices < 5000 && instance.manager().work().passing(); ++slices) {
        if (slices % 5 == 0) instance.manager().link_changed("veth0");
        instance.short_step();
    }
    EXPECT_LT(slices, 5000U);
    EXPECT_EQ(machine_.irq(40), "0");
    EXPECT_EQ(machine_.irq(41), "2");
    instance.stop();
}

TEST_F(LinkTest, AnInterfaceThatGoesWhileQueuesAreListedTakesNoneOfAnotherAlong) {
    std::filesystem::remove(machine_.path("policies/server.yaml"));
    const auto count = [](const json& list) {
        return std::ranges::count_if(list, [](const json& entry) {
            return entry.value("nic", "") == "eth1" || entry.value("label", "").starts_with("eth1");
        });
    };
    bool was_whole = false; // both were answered before the interface went
    for (unsigned slices = 0; !was_whole && slices < 1000; ++slices) {
        Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        std::optional<OwnedText> status, plan;
        instance.manager().status([&](auto text) { status = std::move(*text); });
        instance.manager().plan([&](auto text) { plan = std::move(*text); });
        for (unsigned slice = 0; slice < slices; ++slice)
            instance.short_step();
        was_whole = status && plan;
        hide("eth0");
        instance.manager().link_changed("eth0");
        instance.finish();
        ASSERT_TRUE(status && plan);
        EXPECT_EQ(count(json::parse(status->full())["queues"]), 6) << "after " << slices << " slices";
        EXPECT_EQ(count(json::parse(plan->full())["actions"]), 4) << "after " << slices << " slices";
        show_all();
    }
    EXPECT_TRUE(was_whole);
}

TEST_F(LinkTest, ARenamedInterfaceIsNoLongerKnownByItsFormerName) {
    machine_.policy("nic", "affinity: irq\nnics: [eth0, lan0]\ncpus: \"0,2\"\n");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    const auto queues = instance.status()["queues"].size();
    ASSERT_NE(instance.manager().in_force().world->machine().nic("eth0"), nullptr);
    machine_.rename_nic("eth0", "lan0", "0000:00:03.0");
    reset();
    instance.manager().link_changed("lan0");
    instance.finish();
    const auto& machine = instance.manager().in_force().world->machine();
    EXPECT_EQ(machine.nic("eth0"), nullptr);
    EXPECT_NE(machine.nic("lan0"), nullptr);
    EXPECT_NE(machine.nic("eth1"), nullptr) << "another interface is none of its former selves";
    EXPECT_EQ(machine.vectors_of("eth0").size(), 0U);
    EXPECT_EQ(machine_.irq(30), "0");
    EXPECT_EQ(machine_.irq(31), "2");
    const auto status = instance.status();
    EXPECT_EQ(status["queues"].size(), queues) << "each queue is told of once: " << status["queues"].dump();
    for (const auto& queue : status["queues"])
        EXPECT_EQ(queue["nic"], "lan0") << queue.dump();
    EXPECT_FALSE(instance.explain_text("eth0")) << "there is none of that name";
    instance.stop();
    EXPECT_EQ(machine_.irq(30), "0-3");
    EXPECT_EQ(machine_.irq(31), "0-3");
}

TEST_F(LinkTest, InterfacesWhoseIndexIsNotKnownAreNotTakenForOneAnother) {
    for (const char* device : {"0000:00:03.0/net/eth0", "0000:00:04.0/net/eth1"})
        std::filesystem::remove(machine_.path(std::string("sys/devices/pci0000:00/") + device + "/ifindex"));
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    instance.manager().link_changed("eth0");
    instance.finish();
    EXPECT_NE(instance.manager().in_force().world->machine().nic("eth0"), nullptr);
    EXPECT_NE(instance.manager().in_force().world->machine().nic("eth1"), nullptr);
}

TEST_F(LinkTest, AStormOfChangesIsLookedAtTogether) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    unsigned soon = 0;
    instance.manager().work().on_work([&](Work::Urgency urgency) { soon += urgency == Work::Urgency::soon; });
    for (int i = 0; i < 1000; ++i)
        instance.manager().link_changed("veth" + std::to_string(i));
    EXPECT_GE(soon, 1U) << "the loop begins a pass";
    reset();
    instance.pass();
    EXPECT_NE(machine_.irq(30), "0-3") << "the hardware was read again";
}

} // namespace
} // namespace affinityd::app

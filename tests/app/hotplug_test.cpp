// SPDX-License-Identifier: Apache-2.0
// What is refused for a moment while CPUs, cpusets or interfaces change fills no log.
#include "simulated.hpp"

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>

namespace affinityd::app {
namespace {

using test::Instance;

constexpr const char* moved = "could not be moved";

class Hotplug : public testing::Test {
  protected:
    Hotplug() {
        machine_.policy("server", "match: {comm: server}\ncpus: \"2\"\nbind: set\n");
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,2\"\n");
        machine_.policy("unrelated", "match: {comm: unrelated}\n");
        for (int pid = 10; pid < 10 + tasks; ++pid)
            machine_.process(pid, "server");
        EXPECT_TRUE(daemon_.manager().start());
        daemon_.pass();
    }
    /// As when all CPUs of the masks are offline, and lines are taken down.
    void refuse(int irq_code) {
        for (int pid = 10; pid < 10 + tasks; ++pid)
            daemon_.enforcer().refuse_with[machine::TaskMask{{pid, 100}, pid, "server"}] = EINVAL;
        daemon_.enforcer().refuse_with[irq_30] = irq_code;
    }
    /// The kernel has moved everything elsewhere.
    void reset() const {
        for (int pid = 10; pid < 10 + tasks; ++pid)
            machine_.process(pid, "server", "0-3");
        machine_.set_irq(30, "0-3");
    }
    void expect_placed(const std::string& task, const std::string& irq) const {
        EXPECT_EQ(machine_.irq(30), irq);
        for (int pid = 10; pid < 10 + tasks; ++pid)
            EXPECT_EQ(machine_.allowed(pid, pid), task) << pid;
    }
    static constexpr int tasks = 5;
    const planner::IrqMask irq_30{"devices/pci0000:00/0000:00:03.0", "eth0-TxRx-0", 0, 30};
    test::Machine machine_;
    Instance daemon_{machine_};
};

TEST_F(Hotplug, WhatTheNextPassMendsIsNotLogged) {
    for (const int code : {EINVAL, EIO, EPERM, EBUSY})
        for (const bool is_announced_first : {true, false}) {
            // A write may fail before the event is read that says why; of an interrupt whose link goes down,
            // the errno is that of a managed one, so that only the event tells these apart.
            if (!is_announced_first && (code == EIO || code == EPERM)) continue;
            reset();
            refuse(code);
            if (is_announced_first) daemon_.manager().expect_changes();
            daemon_.pass();
            expect_placed("0-3", "0-3");
            EXPECT_FALSE(daemon_.status()["refused"].empty()) << "status tells at once";
            daemon_.manager().expect_changes();
            daemon_.enforcer().refuse_with.clear();
            daemon_.pass(true);
            expect_placed("2", "0");
            EXPECT_EQ(daemon_.log().times(moved), 0U) << code << daemon_.log().text();
            daemon_.pass();
        }
}

TEST_F(Hotplug, AStormOfChangesIsNotLogged) {
    for (int round = 0; round < 10; ++round) {
        reset();
        refuse(EINVAL);
        daemon_.manager().expect_changes();
        for (int pid = 10; pid < 10 + tasks; ++pid)
            daemon_.tasks().process_changed(pid);
        daemon_.pass(true);
    }
    EXPECT_EQ(daemon_.log().times(moved), 0U) << daemon_.log().text();
}

TEST_F(Hotplug, WhatThePassThatFollowsDoesNotMendIsLoggedOnce) {
    reset();
    refuse(EINVAL);
    daemon_.manager().expect_changes();
    daemon_.pass(true);
    EXPECT_EQ(daemon_.log().times(moved), 0U);
    for (int pass = 0; pass < 5; ++pass)
        daemon_.pass();
    EXPECT_EQ(daemon_.log().times(moved), static_cast<unsigned>(tasks) + 1) << "each once";
}

TEST_F(Hotplug, AnotherRefusalIsLoggedAtOnce) {
    reset();
    daemon_.enforcer().refuse[machine::TaskMask{{10, 100}, 10, "server"}] = enforcer::Outcome::not_permitted;
    daemon_.manager().expect_changes();
    daemon_.pass();
    EXPECT_EQ(daemon_.log().times(moved), 1U);
}

TEST_F(Hotplug, AMaskThatCannotBePutBackForAMomentIsNotLoggedAndPutBackLater) {
    refuse(EINVAL);
    std::filesystem::remove(machine_.path("policies/server.yaml"));
    std::filesystem::remove(machine_.path("policies/nic.yaml"));
    daemon_.manager().expect_changes();
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    expect_placed("2", "0");
    EXPECT_EQ(daemon_.log().times("could not be put back"), 0U);
    daemon_.enforcer().refuse_with.clear();
    daemon_.pass();
    expect_placed("0-3", "0-3");
}

TEST_F(Hotplug, AtTheEndWhatCannotBePutBackIsLoggedEvenThen) {
    refuse(EINVAL);
    daemon_.manager().expect_changes();
    daemon_.stop();
    EXPECT_EQ(daemon_.log().times("could not be put back"), static_cast<unsigned>(tasks) + 1);
}

/// The kernel widens masks whose CPUs have all gone offline, and what it makes of them may be what policies
/// want.
class Widened : public testing::Test {
  protected:
    Widened() {
        machine_.policy("unrelated", "match: {comm: unrelated}\n");
        machine_.process(10, "server", "1-2");
        for (const unsigned irq : {30U, 31U})
            machine_.set_irq(irq, "1-2");
    }
    void want(const std::string& cpus) const {
        machine_.policy("server", "match: {comm: server}\nbind: set\ncpus: \"" + cpus + "\"\n");
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"" + cpus + "\"\n");
    }
    void online(const std::string& cpus) const {
        machine_.tree().file("sys/devices/system/cpu/online", cpus + "\n");
    }
    void begin() {
        daemon_ = std::make_unique<Instance>(machine_);
        ASSERT_TRUE(daemon_->manager().start());
        daemon_->pass();
    }
    void pass_after_changes() {
        daemon_->manager().expect_changes();
        ASSERT_TRUE(daemon_->reload());
        daemon_->pass(true);
    }
    test::Machine machine_;
    std::unique_ptr<Instance> daemon_;
};

TEST_F(Widened, WhoIsInPlaceByTheKernelsDoingGetsItsOriginalBackAfterCpusReturn) {
    for (const bool is_killed : {false, true}) {
        want("3");
        begin();
        EXPECT_EQ(machine_.allowed(10, 10), "3");
        EXPECT_EQ(machine_.irq(30), "3");
        online("0");
        machine_.process(10, "server", "0-3");
        machine_.set_irq(30, "0-3");
        machine_.set_irq(31, "0-3");
        want("0");
        pass_after_changes();
        online("0-3");
        if (is_killed) {
            daemon_.reset();
            for (const char* name : {"server", "nic"})
                std::filesystem::remove(machine_.path(std::string("policies/") + name + ".yaml"));
            begin();
        }
        daemon_->stop();
        EXPECT_EQ(machine_.allowed(10, 10), "1-2") << is_killed;
        EXPECT_EQ(machine_.irq(30), "1-2") << is_killed;
        EXPECT_EQ(machine_.irq(31), "1-2") << is_killed;
    }
}

/// Since 6.2 the kernel remembers which mask it was asked for last, and gives that again as soon as a cpuset
/// or the CPUs that are online allow.
class AskedBefore : public testing::Test {
  protected:
    void begin(const std::string& more) {
        machine_.policy("unrelated", "match: {comm: unrelated}\n");
        want(more);
        machine_.process(10, "server");
        machine_.tree().file("proc/10/cpuset", "/pod\n");
        cpuset("0-3");
        daemon_ = std::make_unique<Instance>(machine_);
        ASSERT_TRUE(daemon_->manager().start());
        daemon_->pass();
    }
    void want(const std::string& more) const { machine_.policy("server", "match: {comm: server}\n" + more); }
    void cpuset(const std::string& cpus) const {
        machine_.tree().file("sys/fs/cgroup/pod/cpuset.cpus.effective", cpus + "\n");
    }
    /// The kernel gives the process this mask, and the daemon looks.
    void kernel_gives(const std::string& mask) {
        machine_.process(10, "server", mask);
        daemon_->manager().expect_changes();
        ASSERT_TRUE(daemon_->reload());
        daemon_->pass(true);
    }
    const std::array<std::string, 3> drifts_{"enforce", "yield", "once"};
    test::Machine machine_;
    std::unique_ptr<Instance> daemon_;
};

TEST_F(AskedBefore, AfterACpusetWasNarrowForAWhileTheMaskIsStillOurs) {
    for (const auto& drift : drifts_)
        for (const bool gives_whole : {false, true}) { // as kernels before 6.2 do
            begin("spread: cpu\nbind: cpu\ndrift: " + drift + "\n");
            const auto first = machine_.allowed(10, 10);
            const std::string other = first == "2" ? "3" : "2";
            cpuset(other);
            kernel_gives(other);
            EXPECT_EQ(machine_.allowed(10, 10), other);
            cpuset("0-3");
            kernel_gives(gives_whole ? "0-3" : first);
            daemon_->pass();
            EXPECT_NE(machine_.allowed(10, 10), "0-3");
            daemon_->stop();
            EXPECT_EQ(machine_.allowed(10, 10), "0-3") << drift << gives_whole;
        }
}

TEST_F(AskedBefore, AfterItsCpusWereOfflineForAWhileTheMaskIsStillOurs) {
    for (const auto& drift : drifts_) {
        begin("bind: set\ncpus: \"2\"\ndrift: " + drift + "\n");
        ASSERT_EQ(machine_.allowed(10, 10), "2");
        machine_.tree().file("sys/devices/system/cpu/online", "0-1,3\n");
        cpuset("0-1,3");
        want("bind: set\ncpus: \"0-3\"\ndrift: " + drift + "\n");
        kernel_gives("0-1,3");
        machine_.tree().file("sys/devices/system/cpu/online", "0-3\n");
        cpuset("0-3");
        kernel_gives("2");
        daemon_->stop();
        EXPECT_EQ(machine_.allowed(10, 10), "0-3") << drift;
    }
}

TEST_F(AskedBefore, WhatTheKernelMadeOfAMaskIsNotTakenForThatMask) {
    begin("bind: set\ncpus: \"2\"\n");
    machine_.tree().file("sys/devices/system/cpu/online", "0-1,3\n");
    cpuset("0-1,3");
    want("bind: set\ncpus: \"0-3\"\n");
    kernel_gives("0-1,3");
    machine_.tree().file("sys/devices/system/cpu/online", "0-3\n");
    cpuset("0-3");
    want("bind: set\ncpus: \"2\"\n");
    kernel_gives("0-1,3");
    EXPECT_EQ(machine_.allowed(10, 10), "2");
}

} // namespace
} // namespace affinityd::app

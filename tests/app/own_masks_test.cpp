// SPDX-License-Identifier: Apache-2.0
// A mask that somebody sets to what a task had from us until a moment ago looks like an inherited one.
#include "simulated.hpp"

#include <array>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace affinityd::app::test {

namespace {

class OwnMasks : public ::testing::Test {
  protected:
    OwnMasks() {
        machine_.policy("server", "match: {comm: server}\ncpus: \"2\"\nbind: set\n");
        machine_.policy("unrelated", "match: {comm: unrelated}\n");
        machine_.process(10, "server");
        machine_.process(11, "server", "0-3", 10); // a worker
        machine_.thread(11, 12, "server", "0-3", 1, 0, 112);
    }
    /// An administrator's, until the daemon's end.
    void set_by_hand_and_expect_that_it_stays(Instance& instance) {
        machine_.process(11, "server", "2", 10);
        machine_.thread(11, 12, "server", "2", 1, 0, 112);
        instance.tasks().process_changed(11);
        for (int i = 0; i < 3; ++i)
            instance.pass();
        EXPECT_EQ(machine_.allowed(11, 11), "2");
        EXPECT_EQ(machine_.allowed(11, 12), "2");
        instance.stop();
        EXPECT_EQ(machine_.allowed(10, 10), "0-3");
        EXPECT_EQ(machine_.allowed(11, 11), "2");
        EXPECT_EQ(machine_.allowed(11, 12), "2");
    }
    Machine machine_;
};

TEST_F(OwnMasks, TheMaskOfAReleasedPolicySetByHandStays) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_EQ(machine_.allowed(11, 12), "2");
    ASSERT_TRUE(instance.release("server"));
    instance.finish();
    ASSERT_EQ(machine_.allowed(11, 12), "0-3");
    set_by_hand_and_expect_that_it_stays(instance);
}

TEST_F(OwnMasks, TheMaskOfARemovedPolicySetByHandStays) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    std::filesystem::remove(machine_.path("policies/server.yaml"));
    ASSERT_TRUE(instance.reload());
    instance.finish();
    ASSERT_EQ(machine_.allowed(11, 12), "0-3");
    set_by_hand_and_expect_that_it_stays(instance);
}

/// What a program read when it started was the mask that it had from us then, and it may set that again:
/// libomp, MKL and Python programs do.
class SavedMask : public ::testing::Test {
  protected:
    void want(const std::string& cpus) const {
        machine_.policy("server",
                        "match: {comm: server}\nbind: set\ncpus: \"" + cpus + "\"\ndrift: " + drift_ + "\n");
    }
    /// A daemon, and a program that has set again the mask that it had at first.
    [[nodiscard]] std::unique_ptr<Instance> with_saved_mask(const std::string& drift) {
        drift_ = drift;
        machine_.policy("unrelated", "match: {comm: unrelated}\n");
        machine_.process(10, "server");
        want("0-1");
        auto instance = std::make_unique<Instance>(machine_);
        EXPECT_TRUE(instance->manager().start());
        instance->pass();
        EXPECT_EQ(machine_.allowed(10, 10), "0-1");
        want("1");
        EXPECT_TRUE(instance->reload());
        instance->pass();
        EXPECT_EQ(machine_.allowed(10, 10), "1");
        machine_.process(10, "server", "0-1");
        return instance;
    }
    const std::array<const char*, 3> drifts_{"enforce", "yield", "once"};
    std::string drift_;
    Machine machine_;
};

TEST_F(SavedMask, IsOursAtTheEnd) {
    for (const auto* drift : drifts_) {
        const auto instance = with_saved_mask(drift);
        instance->stop();
        EXPECT_EQ(machine_.allowed(10, 10), "0-3") << drift;
    }
}

TEST_F(SavedMask, IsOursWhenThePolicyIsReleased) {
    for (const auto* drift : drifts_) {
        const auto instance = with_saved_mask(drift);
        EXPECT_TRUE(instance->release("server"));
        EXPECT_EQ(machine_.allowed(10, 10), "0-3") << drift;
    }
}

TEST_F(SavedMask, IsOursWhenThePolicyIsRemoved) {
    for (const auto* drift : drifts_) {
        const auto instance = with_saved_mask(drift);
        std::filesystem::remove(machine_.path("policies/server.yaml"));
        EXPECT_TRUE(instance->reload());
        instance->pass();
        EXPECT_EQ(machine_.allowed(10, 10), "0-3") << drift;
    }
}

TEST_F(SavedMask, IsNoReasonToGiveWay) {
    for (const auto* drift : drifts_) {
        const auto instance = with_saved_mask(drift);
        instance->pass();
        EXPECT_EQ(machine_.allowed(10, 10), "1") << drift;
        machine_.process(10, "server", "2");
        instance->pass();
        EXPECT_EQ(machine_.allowed(10, 10), drift == drifts_[0] ? "1" : "2")
            << "this one is its own: " << drift;
        instance->stop();
    }
}

TEST_F(SavedMask, OfAnInterruptIsWhoeversWroteIt) {
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0-1\"\n");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    const auto first = machine_.irq(30);
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"2-3\"\n");
    ASSERT_TRUE(instance.reload());
    instance.pass();
    ASSERT_NE(machine_.irq(30), first);
    machine_.set_irq(30, first);
    instance.stop();
    EXPECT_EQ(machine_.irq(30), first);
}

/// The main thread has read the mask, and a thread that is born later sets it: a worker of libomp's.
class SavedByTheMainThread : public SavedMask {
  protected:
    void want_settled(const std::string& drift) {
        drift_ = drift;
        machine_.policy("unrelated", "match: {comm: unrelated}\n");
        machine_.process(10, "server");
        want("0-1"); // while it settles
        daemon_ = std::make_unique<Instance>(machine_);
        ASSERT_TRUE(daemon_->manager().start());
        daemon_->pass();
        want("1");
        ASSERT_TRUE(daemon_->reload());
        daemon_->pass();
        ASSERT_EQ(machine_.allowed(10, 10), "1");
    }
    void make_worker(const std::string& mask) const {
        machine_.thread(10, 11, "worker", "1", 1, 0, 111);
        daemon_->tasks().thread_changed(10, 11);
        machine_.thread(10, 11, "worker", mask, 1, 0, 111);
    }
    void remove_policy() const {
        std::filesystem::remove(machine_.path("policies/server.yaml"));
        EXPECT_TRUE(daemon_->reload());
        daemon_->pass();
    }
    std::unique_ptr<Instance> daemon_;
};

TEST_F(SavedByTheMainThread, IsOursInAWorker) {
    for (const auto* drift : drifts_)
        for (const std::string how : {"stop", "release", "remove", "the next daemon stops"}) {
            want_settled(drift);
            make_worker("0-1");
            if (how == "release") {
                EXPECT_TRUE(daemon_->release("server"));
            } else if (how == "remove") {
                remove_policy();
            } else {
                if (how != "stop") {
                    daemon_.reset(); // killed
                    daemon_ = std::make_unique<Instance>(machine_);
                    ASSERT_TRUE(daemon_->manager().start());
                }
                daemon_->stop();
            }
            EXPECT_EQ(machine_.allowed(10, 11), "0-3") << drift << ", " << how;
            daemon_->stop();
        }
}

TEST_F(SavedByTheMainThread, IsNoReasonToGiveWay) {
    for (const auto* drift : drifts_) {
        want_settled(drift);
        make_worker("0-1");
        daemon_->pass();
        EXPECT_EQ(machine_.allowed(10, 11), "1") << drift;
        daemon_->stop();
    }
}

TEST_F(SavedByTheMainThread, AnotherMaskIsItsOwnAndSoIsThatOfAnotherProcess) {
    want_settled("yield");
    make_worker("0-2");
    machine_.process(20, "server");
    daemon_->tasks().process_changed(20);
    ASSERT_EQ(machine_.allowed(20, 20), "1");
    machine_.process(20, "server", "0-1");
    daemon_->pass();
    EXPECT_EQ(machine_.allowed(10, 11), "0-2");
    EXPECT_EQ(machine_.allowed(20, 20), "0-1");
    daemon_->stop();
    EXPECT_EQ(machine_.allowed(10, 11), "0-2");
    EXPECT_EQ(machine_.allowed(20, 20), "0-1");
}

/// Policies that give way, and a program that pins itself while it is where the policy wants it anyway: as
/// one does that settles on all CPUs. There is no record then.
class FoundInPlace : public ::testing::Test {
  protected:
    void want(const std::string& cpus) const {
        machine_.policy("server", "match: {comm: server}\nbind: set\n" + cpus + "drift: " + drift_ + "\n");
    }
    void begin(const std::string& drift) {
        drift_ = drift;
        machine_.process(10, "server");
        want("");
        daemon_ = std::make_unique<Instance>(machine_);
        ASSERT_TRUE(daemon_->manager().start());
        daemon_->pass();
        ASSERT_EQ(daemon_->journal().size(), 0U);
    }
    void want_less() {
        want("cpus: \"1\"\n");
        ASSERT_TRUE(daemon_->reload());
        daemon_->pass();
    }
    std::string drift_;
    Machine machine_;
    std::unique_ptr<Instance> daemon_;
};

TEST_F(FoundInPlace, AMaskThatTheProgramSetsItselfIsLeftAlone) {
    for (const auto* drift : {"yield", "once"}) {
        begin(drift);
        machine_.process(10, "server", "2");
        daemon_->tasks().process_changed(10);
        EXPECT_EQ(machine_.allowed(10, 10), "2") << drift;
        want_less();
        EXPECT_EQ(machine_.allowed(10, 10), "2") << drift;
        EXPECT_EQ(state_of(daemon_->status(), 10, 10), "yielded") << drift;
        daemon_->stop();
        EXPECT_EQ(machine_.allowed(10, 10), "2") << drift;
    }
}

TEST_F(FoundInPlace, UnderEnforceItIsReplaced) {
    begin("enforce");
    machine_.process(10, "server", "2");
    want_less();
    EXPECT_EQ(machine_.allowed(10, 10), "1");
}

TEST_F(FoundInPlace, WhoDoesNothingIsPlaced) {
    for (const auto* drift : {"enforce", "yield", "once"}) {
        begin(drift);
        want_less();
        EXPECT_EQ(machine_.allowed(10, 10), "1") << drift;
        daemon_->stop();
        EXPECT_EQ(machine_.allowed(10, 10), "0-3") << drift;
    }
}

TEST_F(FoundInPlace, UnderYieldItIsPlacedAgainWhenItMayRunEverywhere) {
    begin("yield");
    machine_.process(10, "server", "2");
    want_less();
    machine_.process(10, "server", "0-3");
    daemon_->pass();
    EXPECT_EQ(machine_.allowed(10, 10), "1");
}

TEST_F(FoundInPlace, WhatTheKernelDoesIsNoReasonToGiveWay) {
    begin("once");
    machine_.tree().file("sys/devices/system/cpu/online", "0-2\n");
    machine_.process(10, "server", "0-2");
    daemon_->manager().expect_changes();
    daemon_->pass(true);
    machine_.tree().file("sys/devices/system/cpu/online", "0-3\n");
    machine_.process(10, "server", "0-3");
    daemon_->manager().expect_changes();
    want("cpus: \"1\"\n");
    ASSERT_TRUE(daemon_->reload());
    daemon_->pass(true);
    EXPECT_EQ(machine_.allowed(10, 10), "1");
}

} // namespace

} // namespace affinityd::app::test

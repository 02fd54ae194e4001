// SPDX-License-Identifier: Apache-2.0
// The manager where others change masks too: drift, fights, what the kernel resets, and what is put back in
// the end.
#include "simulated.hpp"
#include "support/full_disk.hpp"

namespace affinityd::app {
namespace {

using test::Instance;
using test::state_of;

class Undo : public testing::Test {
  protected:
    test::Machine machine_;
    static constexpr const char* on_two = "match: {comm: server}\ncpus: \"2\"\nbind: set\n";
};

TEST_F(Undo, DriftIsPutRightAndAFightIsLeft) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    unsigned corrected = 0;
    for (unsigned round = 0; round < 10; ++round) {
        machine_.process(10, "server", "0-1");
        instance.pass();
        if (machine_.allowed(10, 10) == "2") ++corrected;
    }
    EXPECT_EQ(corrected, 5U) << "who fights on for ever costs more than a wrong mask";
    EXPECT_EQ(instance.log().times("somebody else keeps changing its mask"), 1U);
    EXPECT_EQ(state_of(instance.status(), 10, 10), "fought over");
    instance.manager().apply();
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "2") << "asked for by a person";
    machine_.process(10, "server", "0-1");
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "2") << "and begun anew: no truce yet";
}

TEST_F(Undo, WhatTheKernelDoesWithCpusAndCpusetsIsNeitherAFightNorDrift) {
    machine_.policy("server", std::string(on_two) + "drift: yield\n");
    machine_.policy("other", "match: {comm: other}\ncpus: \"3\"\nbind: set\n");
    machine_.process(10, "server");
    machine_.process(20, "other");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    for (unsigned round = 0; round < 10; ++round) {
        machine_.process(10, "server", "0-3");
        machine_.process(20, "other", "0-3");
        instance.manager().expect_changes();
        instance.pass();
        EXPECT_EQ(machine_.allowed(10, 10), "2") << round;
        EXPECT_EQ(machine_.allowed(20, 20), "3") << round;
    }
    EXPECT_EQ(instance.log().times("somebody else"), 0U);
    machine_.process(10, "server", "0-1");
    instance.manager().expect_changes();
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "0-1") << "no kernel does that: its own wish";
    machine_.process(10, "server", "0-3");
    instance.manager().expect_changes();
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3") << "still its own";
    instance.manager().apply();
    instance.finish();
    machine_.process(20, "other", "0-3");
    instance.pass();
    EXPECT_EQ(machine_.allowed(20, 20), "3");
}

TEST_F(Undo, DriftOnceGivesWay) {
    machine_.policy("server", std::string(on_two) + "drift: once\n");
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_EQ(machine_.allowed(10, 10), "2");
    machine_.process(10, "server", "0-1");
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
    EXPECT_EQ(state_of(instance.status(), 10, 10), "yielded");
    instance.manager().stop();
    EXPECT_EQ(machine_.allowed(10, 10), "0-1") << "no longer ours to put back";
}

TEST_F(Undo, TheEndPutsBackButWhatIsToBeKept) {
    machine_.policy("server", on_two);
    machine_.policy("stays", "match: {comm: stays}\ncpus: \"1\"\nbind: set\non_stop: keep\n");
    machine_.process(10, "server", "1-3");
    machine_.process(20, "stays");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(50, "late", "2", 10); // born, and no event has told of it yet
    instance.manager().stop();
    EXPECT_EQ(machine_.allowed(10, 10), "1-3");
    EXPECT_EQ(machine_.allowed(20, 20), "1");
    EXPECT_EQ(machine_.allowed(50, 50), "1-3");
    EXPECT_EQ(instance.journal().size(), 0U);
}

TEST_F(Undo, AfterACrashTheFirstOriginalCounts) {
    machine_.policy("server", on_two);
    machine_.process(10, "server", "1-3");
    {
        Instance crashed(machine_);
        ASSERT_TRUE(crashed.manager().start());
        crashed.pass();
    }
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(instance.enforcer().applied, 0U) << "in place already";
    instance.manager().stop();
    EXPECT_EQ(machine_.allowed(10, 10), "1-3");
}

TEST_F(Undo, WhatADamagedJournalLostIsTakenForOurs) {
    machine_.policy("server", std::string(on_two) + "affinity: full\nnics: [eth0]\n");
    machine_.process(10, "server", "2");
    machine_.process(20, "other", "2");
    machine_.tree().file("proc/irq/default_smp_affinity", "f\n");
    machine_.tree().file("undo.journal", "task\t10\t100\t10\tserver\thel");
    {
        Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        ASSERT_TRUE(instance.journal().damaged());
        instance.pass();
        EXPECT_EQ(instance.log().times("the undo journal was damaged: 1 subjects"), 1U)
            << instance.log().text();
        EXPECT_FALSE(instance.journal().damaged());
        instance.pass();
        instance.manager().stop();
    }
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    EXPECT_EQ(machine_.allowed(20, 20), "2") << "no policy wants it there";
}

TEST_F(Undo, DamageOnAFullDiskIsMendedOnceThereIsRoom) {
    machine_.policy("server", on_two);
    machine_.process(10, "server", "2");
    machine_.tree().file("undo.journal", "task\t10\t100\t10\tserver\thel");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    {
        const affinityd::test::FullDisk full;
        instance.pass();
    }
    EXPECT_TRUE(instance.journal().damaged());
    instance.pass();
    EXPECT_FALSE(instance.journal().damaged());
    instance.manager().stop();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
}

TEST_F(Undo, AResetThatIsSeenBeforeItsPassIsNotGivenWayTo) {
    machine_.policy("server", std::string(on_two) + "drift: yield\n");
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(10, "server", "0-1"); // a cpuset of these is not known yet
    instance.manager().expect_changes();
    instance.manager().process_changed(10);
    EXPECT_NE(state_of(instance.status(), 10, 10), "yielded");
    machine_.process(10, "server", "0-3");
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
}

} // namespace
} // namespace affinityd::app

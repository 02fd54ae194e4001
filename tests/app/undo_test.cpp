// SPDX-License-Identifier: Apache-2.0
// The manager where others change masks too: drift, fights, what the kernel resets, and what is put back in
// the end.
#include "simulated.hpp"
#include "support/full_disk.hpp"

namespace affinityd::app {
namespace {

using test::Instance;
using test::policy_named;
using test::state_of;

class Undo : public testing::Test {
  protected:
    test::Machine machine_;
    static constexpr const char* on_two = "match: {comm: server}\ncpus: \"2\"\nbind: set\n";
};

TEST_F(Undo, DriftIsPutRightUntilItIsAFightAndApplyBeginsAnew) {
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
    instance.apply();
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "2") << "asked for by a person";
    machine_.process(10, "server", "0-1");
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "2") << "and begun anew: no backoff yet";
}

TEST_F(Undo, MasksThatTheKernelResetsArePutRightAndNoFight) {
    machine_.policy("server", std::string(on_two) + "drift: yield\n");
    machine_.policy("other", "match: {comm: other}\ncpus: \"3\"\nbind: set\ndrift: once\n");
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
    EXPECT_EQ(machine_.allowed(10, 10), "2") << "it has given up its own";
    instance.apply();
    instance.finish();
    machine_.process(20, "other", "0-3");
    instance.pass();
    EXPECT_EQ(machine_.allowed(20, 20), "0-3") << "nothing was announced: somebody's wish";
}

TEST_F(Undo, UnderDriftOnceAMaskOfItsOwnStays) {
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
    instance.stop();
    EXPECT_EQ(machine_.allowed(10, 10), "0-1") << "no longer ours to put back";
}

TEST_F(Undo, TheEndPutsBackAllButWhatIsToBeKept) {
    machine_.policy("server", on_two);
    machine_.policy("stays", "match: {comm: stays}\ncpus: \"1\"\nbind: set\non_stop: keep\n");
    machine_.process(10, "server", "1-3");
    machine_.process(20, "stays");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(50, "late", "2", 10); // born, and no event has told of it yet
    instance.stop();
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
    instance.stop();
    EXPECT_EQ(machine_.allowed(10, 10), "1-3");
}

TEST_F(Undo, SubjectsInPlaceAreAssumedOursAfterJournalDamage) {
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
        instance.stop();
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
    instance.stop();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
}

TEST_F(Undo, AResetThatAnEventSeesBeforeThePassIsNotYieldedTo) {
    machine_.policy("server", std::string(on_two) + "drift: yield\n");
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(10, "server", "0-1"); // a cpuset of these is not known yet
    instance.manager().expect_changes();
    instance.tasks().process_changed(10);
    EXPECT_NE(state_of(instance.status(), 10, 10), "yielded");
    machine_.process(10, "server", "0-3");
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
}

TEST_F(Undo, OfARemovedPolicyTheOriginalsAreRestored) {
    machine_.policy("server", on_two);
    machine_.policy("zz", "match: {comm: never}\n");
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    std::filesystem::remove(machine_.path("policies/server.yaml"));
    ASSERT_TRUE(instance.reload());
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    EXPECT_EQ(instance.journal().size(), 0U);
    EXPECT_EQ(policy_named(instance.status(), "server"), nullptr);
}

TEST_F(Undo, AMaskSetByOthersStaysWhenThePolicyIsRemoved) {
    machine_.policy("server", on_two);
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0\"\n");
    machine_.process(10, "server");
    machine_.process(11, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(10, "server", "0-1"); // an administrator's
    machine_.set_irq(30, "3");
    for (const char* file : {"policies/server.yaml", "policies/nic.yaml"})
        std::filesystem::remove(machine_.path(file));
    machine_.policy("unrelated", "match: {comm: unrelated}\n");
    ASSERT_TRUE(instance.reload());
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
    EXPECT_EQ(machine_.irq(30), "3");
    EXPECT_EQ(machine_.allowed(11, 11), "0-3");
    EXPECT_EQ(machine_.irq(31), "0-3");
    EXPECT_EQ(instance.journal().size(), 0U);
    instance.stop();
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
}

TEST_F(Undo, AMaskSetByOthersStaysWhenTheProcessIsRenamedOutOfThePolicy) {
    machine_.policy("server", on_two);
    for (const int pid : {10, 11})
        machine_.process(pid, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    for (const int pid : {10, 11})
        machine_.process(pid, "renamed", "0-1");
    instance.tasks().process_changed(10); // one by its event, one by the pass
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
    instance.pass();
    for (const int pid : {10, 11})
        EXPECT_EQ(machine_.allowed(pid, pid), "0-1") << pid;
    EXPECT_EQ(instance.journal().size(), 0U);
}

TEST_F(Undo, AMaskSetByOthersStaysWhenThePolicyIsReleased) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(10, "server", "0-1");
    ASSERT_TRUE(instance.release("server"));
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "0-1");
}

TEST_F(Undo, MasksOfARemovedPolicyThatKeepsStay) {
    machine_.policy("stays", "match: {comm: stays}\ncpus: \"1\"\nbind: set\non_stop: keep\n");
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0\"\non_stop: keep\n");
    machine_.process(10, "stays");
    machine_.thread(10, 11, "worker", "0-3", 1, 0, 111);
    machine_.thread(10, 12, "worker", "0-3", 1, 0, 112);
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_EQ(machine_.allowed(10, 12), "1");
    for (const char* file : {"policies/stays.yaml", "policies/nic.yaml"})
        std::filesystem::remove(machine_.path(file));
    machine_.policy("unrelated", "match: {comm: unrelated}\n");
    ASSERT_TRUE(instance.reload());
    machine_.thread(10, 13, "worker", "1", 1, 0, 113); // born with the mask of the one that made it
    instance.tasks().process_changed(10);
    instance.manager().link_changed("eth0");
    instance.finish();
    instance.pass();
    for (const int tid : {10, 11, 12, 13})
        EXPECT_EQ(machine_.allowed(10, tid), "1") << tid;
    EXPECT_EQ(machine_.irq(30), "0");
    EXPECT_EQ(instance.journal().size(), 0U);
    instance.stop();
    EXPECT_EQ(machine_.allowed(10, 12), "1");
    EXPECT_EQ(machine_.irq(30), "0");
}

TEST_F(Undo, AStopRightAfterTheReloadKeepsMasksOfARemovedPolicyThatKeeps) {
    machine_.policy("stays", "match: {comm: stays}\ncpus: \"1\"\nbind: set\non_stop: keep\n");
    machine_.policy("unrelated", "match: {comm: unrelated}\n");
    machine_.process(10, "stays");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    std::filesystem::remove(machine_.path("policies/stays.yaml"));
    ASSERT_TRUE(instance.reload());
    instance.stop();
    EXPECT_EQ(machine_.allowed(10, 10), "1");
    EXPECT_EQ(instance.journal().size(), 0U);
}

TEST_F(Undo, UnderDriftOnceEvenAllCpusAreAMaskOfItsOwnAndUnderYieldTheyAreNot) {
    for (const auto& [drift, expected] :
         std::map<std::string, std::string>{{"once", "0-3"}, {"yield", "2"}, {"enforce", "2"}}) {
        machine_.policy("server", std::string(on_two) + "drift: " + drift + "\n");
        machine_.process(10, "server");
        Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        instance.pass();
        ASSERT_EQ(machine_.allowed(10, 10), "2");
        machine_.process(10, "server", "0-3");
        instance.pass();
        EXPECT_EQ(machine_.allowed(10, 10), expected) << drift;
        instance.stop();
        EXPECT_EQ(machine_.allowed(10, 10), "0-3") << drift;
    }
}

/// A process whose cpuset is cut while it is under policy, so that the kernel cuts its mask, too.
class CutUndo : public Undo {
  protected:
    CutUndo() {
        machine_.policy("server", "match: {comm: server}\ncpus: \"1-2\"\nbind: set\n");
        machine_.process(10, "server");
        machine_.tree().file("proc/10/cpuset", "/cage\n");
        cpuset("0-3");
    }
    void cpuset(const std::string& cpus) const {
        machine_.tree().file("sys/fs/cgroup/cage/cpuset.cpus.effective", cpus + "\n");
    }
    void cut() const {
        cpuset("0-1");
        machine_.process(10, "server", "1");
        machine_.tree().file("proc/10/cpuset", "/cage\n");
    }
};

TEST_F(CutUndo, TheEndRestoresAMaskThatACpusetHasCut) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_EQ(machine_.allowed(10, 10), "1-2");
    cut();
    instance.stop();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
}

TEST_F(CutUndo, AReleaseRestoresAMaskThatACpusetHasCut) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    cut();
    ASSERT_TRUE(instance.release("server"));
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
}

TEST_F(CutUndo, OfARemovedPolicyTheOriginalOfACutMaskIsRestored) {
    machine_.policy("unrelated", "match: {comm: unrelated}\n");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    cut();
    std::filesystem::remove(machine_.path("policies/server.yaml"));
    ASSERT_TRUE(instance.reload());
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
}

TEST_F(Undo, AForeignMaskIsKeptOffExclusiveCpusInTheSamePass) {
    machine_.policy("server", on_two);
    machine_.policy("lonely", "match: {comm: lonely}\ncpus: \"3\"\nexclusive: true\n");
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(10, "renamed", "1-3"); // a mask of its own, and no policy's any more
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "1-2");
}

TEST_F(Undo, AReleasedPolicyClaimsNoCpus) {
    machine_.policy("server", std::string(on_two) + "exclusive: true\n");
    machine_.process(10, "server");
    machine_.process(20, "other");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    for (const char* what : {"server", ""}) {
        instance.apply();
        instance.finish();
        ASSERT_EQ(machine_.allowed(10, 10), "2");
        ASSERT_EQ(machine_.allowed(20, 20), "0-1,3");
        ASSERT_TRUE(instance.release(what));
        instance.finish();
        instance.pass(true);
        EXPECT_EQ(machine_.allowed(10, 10), "0-3") << what;
        EXPECT_EQ(machine_.allowed(20, 20), "0-3") << what;
    }
}

TEST_F(Undo, AnInterfaceThatChangesIsNoExcuseForMasksOfTasks) {
    machine_.policy("server", on_two);
    machine_.policy("other", "match: {comm: other}\ncpus: \"3\"\nbind: set\ndrift: once\n");
    machine_.process(10, "server");
    machine_.process(20, "other");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(20, "other", "0-3");
    for (unsigned round = 0; round < 10; ++round) {
        machine_.process(10, "server", "0-1");
        instance.manager().link_changed("eth0");
        instance.pass();
    }
    EXPECT_EQ(machine_.allowed(20, 20), "0-3") << "no link resets a task's mask: somebody's wish";
    EXPECT_EQ(instance.log().times("somebody else keeps changing its mask"), 1U) << "and a fight is one";
}

TEST_F(Undo, AMaskThatAChildHadBeforeItsParentGotTheSameIsItsOwn) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    machine_.process(11, "server", "2", 10);
    Instance instance(machine_);
    instance.enforcer().now = 200; // all of them were born at 100
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_EQ(machine_.allowed(10, 10), "2");
    machine_.process(12, "server", "2", 10, 0, 300);
    instance.pass();
    instance.stop();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    EXPECT_EQ(machine_.allowed(11, 11), "2");
    EXPECT_EQ(machine_.allowed(12, 12), "0-3") << "born with its parent's mask";
}

} // namespace
} // namespace affinityd::app

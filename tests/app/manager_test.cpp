// SPDX-License-Identifier: Apache-2.0
// The manager over a machine out of files: passes and events.
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using nlohmann::json;
using test::Instance;
using test::policy_named;
using test::state_of;

class ManagerTest : public testing::Test {
  protected:
    test::Machine machine_;
    static constexpr const char* on_two = "match: {comm: server}\ncpus: \"2\"\nbind: set\n";
};

TEST_F(ManagerTest, APassPlacesWhatIsThereAndASecondDoesNothing) {
    machine_.policy("server", std::string(on_two) + "threads: [{name: \"io-*\", cpus: \"3\", bind: cpu}]\n");
    machine_.process(10, "server");
    machine_.thread(10, 11, "io-1", "0-3", 1, 0, 101);
    machine_.process(20, "other");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    EXPECT_EQ(instance.plan()["actions"].size(), 2U) << "planned and not done: " << instance.plan().dump();
    EXPECT_EQ(instance.enforcer().applied, 0U);
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_EQ(machine_.allowed(10, 11), "3");
    EXPECT_EQ(machine_.allowed(20, 20), "0-3");
    EXPECT_EQ(instance.enforcer().applied, 2U);
    EXPECT_EQ(instance.plan()["actions"], json::array());
    instance.pass(true);
    EXPECT_EQ(instance.enforcer().applied, 2U) << "an unchanged machine needs nothing";
    EXPECT_EQ(instance.journal().size(), 2U);

    const auto status = instance.status();
    EXPECT_EQ(status["online"], "0-3");
    EXPECT_EQ(status["reconciles"], 2);
    EXPECT_EQ(status["reconciling"], false);
    EXPECT_EQ(status["journal"], 2);
    EXPECT_EQ(status["dry_run"], false);
    EXPECT_EQ(status["measurement"], nullptr);
    EXPECT_EQ(status["outcomes"], json({{"done", 2}}));
    EXPECT_EQ(status["policy_folders"], json({machine_.policies()}));
    const auto policy = policy_named(status, "server");
    EXPECT_EQ(policy["processes"], 1);
    EXPECT_EQ(policy["threads"], 2);
    EXPECT_EQ(policy["threads_in_place"], 2);
    EXPECT_EQ(policy["affinity"], "process");
    EXPECT_EQ(policy["cpus"], "2-3") << "with those of its thread rule";
    EXPECT_EQ(policy["active"], true);
    EXPECT_EQ(state_of(status, 10, 11), "in place");
    EXPECT_EQ(state_of(status, 20, 20), "not under policy");
}

TEST_F(ManagerTest, ADryRunPlansAndChangesNothing) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    Instance instance(machine_, false);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    EXPECT_EQ(instance.journal().size(), 0U);
    EXPECT_EQ(instance.status()["dry_run"], true);
    EXPECT_EQ(instance.plan()["actions"].size(), 1U);
    instance.stop();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
}

TEST_F(ManagerTest, APassWithoutTimePlacesOneThreadASlice) {
    machine_.policy("server", on_two);
    for (int pid = 10; pid < 15; ++pid)
        machine_.process(pid, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    unsigned now = 0;
    instance.manager().work().on_work(
        [&](Work::Urgency urgency) { now += urgency == Work::Urgency::now ? 1 : 0; });
    instance.manager().begin_pass(false);
    EXPECT_EQ(now, 1U) << "who begins a pass must be heard by the loop";
    unsigned steps = 0;
    for (unsigned before = 0; !instance.short_step(); before = instance.enforcer().applied, ++steps) {
        EXPECT_TRUE(instance.manager().work().passing());
        EXPECT_LE(instance.enforcer().applied, before + 1)
            << "one thread a slice, when there is no time at all";
    }
    EXPECT_GE(steps, 5U);
    EXPECT_EQ(instance.enforcer().applied, 5U);
    EXPECT_FALSE(instance.manager().work().passing());
    EXPECT_TRUE(instance.step()) << "none under way";
}

TEST_F(ManagerTest, AProcessOfManyThreadsIsLeftBetweenThemAndEventsMeanwhileCount) {
    machine_.policy("server", std::string(on_two) + "threads: [{name: \"io-*\", cpus: \"3\", bind: cpu}]\n");
    machine_.process(10, "server");
    for (int tid = 11; tid < 15; ++tid)
        machine_.thread(10, tid, "worker", "0-3", 1, 0, 100 + tid);
    Instance instance(machine_);
    auto& manager = instance.manager();
    ASSERT_TRUE(manager.start());
    manager.begin_pass(false);
    unsigned steps = 0;
    // Once two threads are placed, events tell of what a fact read before does not know.
    while (!instance.short_step() && ++steps < 500) {
        if (instance.enforcer().applied != 2) continue;
        machine_.thread(10, 13, "io-1", "0-3", 1, 0, 113);
        machine_.thread(10, 15, "io-2", "0-3", 1, 0, 115);
        instance.tasks().thread_changed(10, 13);
        instance.tasks().thread_changed(10, 15);
        machine_.end_thread(10, 14);
        instance.tasks().task_gone(10, 14);
    }
    EXPECT_GT(steps, 5U);
    EXPECT_LT(steps, 500U);
    for (const int tid : {10, 11, 12})
        EXPECT_EQ(machine_.allowed(10, tid), "2") << tid;
    EXPECT_EQ(machine_.allowed(10, 13), "3");
    EXPECT_EQ(machine_.allowed(10, 15), "3");
    EXPECT_EQ(state_of(instance.status(), 10, 15), "in place") << "born while the pass was elsewhere";
    EXPECT_EQ(state_of(instance.status(), 10, 14), "not under policy");
    EXPECT_EQ(instance.journal().size(), 5U);
    EXPECT_EQ(instance.enforcer().applied, 5U) << "each once";
}

TEST_F(ManagerTest, AProcessThatEndsDuringItsTurnIsLeftAlone) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    for (int tid = 11; tid < 15; ++tid)
        machine_.thread(10, tid, "worker", "0-3", 1, 0, 100 + tid);
    Instance instance(machine_);
    auto& manager = instance.manager();
    ASSERT_TRUE(manager.start());
    manager.begin_pass(false);
    while (!instance.short_step() && instance.enforcer().applied < 2) {
    }
    machine_.end(10);
    for (int tid = 14; tid >= 10; --tid)
        instance.tasks().task_gone(10, tid);
    machine_.process(10, "other", "2", 1, 0, 500); // the next of this number has this mask of its own
    while (!instance.short_step()) {
    }
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_FALSE(instance.knows(10));
    EXPECT_EQ(instance.journal().size(), 0U);
}

TEST_F(ManagerTest, ThreadsThatEndUnnoticedAreForgotten) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    machine_.thread(10, 11, "worker", "0-3", 1, 0, 111);
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(instance.journal().size(), 2U);
    machine_.end_thread(10, 11);
    machine_.thread(10, 11, "worker", "0-3", 1, 0, 222); // the number is used again
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 11), "2");
    EXPECT_EQ(instance.journal().size(), 2U);
    machine_.end(10);
    instance.pass();
    EXPECT_EQ(instance.journal().size(), 0U);
}

TEST_F(ManagerTest, EventsPlaceAtOnceAndForgetWhatHasGone) {
    machine_.policy("server", on_two);
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_FALSE(!instance.tasks().table().processes().empty());
    machine_.process(10, "server");
    instance.tasks().process_changed(10);
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_TRUE(instance.knows(10));
    machine_.thread(10, 12, "worker", "0-3", 1, 0, 102);
    instance.tasks().thread_changed(10, 12);
    EXPECT_EQ(machine_.allowed(10, 12), "2");
    EXPECT_EQ(instance.tasks().table().processes().size(), 1U);
    EXPECT_EQ(instance.tasks().table().threads(), 2U);
    EXPECT_EQ(instance.status()["fast_path"], 2);

    machine_.end_thread(10, 12);
    instance.tasks().task_gone(10, 12);
    EXPECT_EQ(instance.journal().size(), 1U);
    machine_.end(10);
    instance.tasks().task_gone(10, 10);
    EXPECT_EQ(instance.journal().size(), 0U);
    EXPECT_FALSE(!instance.tasks().table().processes().empty());
}

TEST_F(ManagerTest, EventsOfWhatDoesNotExistDoNothing) {
    machine_.policy("server", on_two);
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    for (const int number : {-1, 0, 999, 2147483647}) {
        instance.tasks().process_changed(number);
        instance.tasks().process_changed(number, {number});
        instance.tasks().thread_changed(number, number);
        instance.tasks().task_gone(number, number);
        EXPECT_FALSE(instance.knows(number));
    }
    EXPECT_EQ(instance.enforcer().applied, 0U);
}

TEST_F(ManagerTest, ALaterProcessOfTheSameNumberIsPlacedAnew) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.end(10);
    machine_.process(10, "other", "0-3", 1, 0, 900);
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    EXPECT_FALSE(instance.knows(10));
    EXPECT_EQ(instance.journal().size(), 0U);
}

TEST_F(ManagerTest, AProgramThatGivesUpItsNameGetsItsMaskBack) {
    machine_.policy("server", on_two);
    machine_.process(10, "server", "1-3");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_EQ(machine_.allowed(10, 10), "2");
    machine_.process(10, "renamed", "2");
    instance.tasks().process_changed(10);
    instance.finish(); // on a busy machine, the time for an event may be over before its end
    EXPECT_EQ(machine_.allowed(10, 10), "1-3");
    EXPECT_FALSE(instance.knows(10));
}

TEST_F(ManagerTest, AChildThatNobodyWantsGetsItsCreatorsOriginal) {
    machine_.policy("server", on_two);
    machine_.process(10, "server", "1-3");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(50, "child", "2", 10);
    instance.tasks().process_changed(50, {10});
    instance.finish(); // on a busy machine it takes more than one turn
    EXPECT_EQ(machine_.allowed(50, 50), "1-3");
    machine_.process(51, "loner", "2", 1);
    instance.tasks().process_changed(51, {1});
    instance.finish();
    EXPECT_EQ(machine_.allowed(51, 51), "2") << "its own wish";
}

TEST_F(ManagerTest, WithBadPoliciesOnlyTheDaemonStartsWithNone) {
    machine_.policy("server", "match: {comm: [}\n");
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    EXPECT_EQ(instance.log().times("server.yaml:"), 1U) << instance.log().text();
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
}

TEST_F(ManagerTest, LostEventsAreCountedAndAPassFollows) {
    machine_.policy("server", on_two);
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(10, "server");
    instance.manager().events_lost();
    EXPECT_TRUE(instance.manager().work().passing());
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_EQ(instance.status()["events_lost"], 1);
}

TEST_F(ManagerTest, ARefusedTaskIsShownAndTheOthersArePlaced) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    machine_.process(11, "server");
    Instance instance(machine_);
    instance.enforcer().refuse[planner::TaskMask{{10, 100}, 10, "server"}] = enforcer::Outcome::not_permitted;
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    EXPECT_EQ(machine_.allowed(11, 11), "2");
    const auto status = instance.status();
    EXPECT_EQ(state_of(status, 10, 10), "refused");
    EXPECT_EQ(status["refused"].size(), 1U);
    EXPECT_EQ(policy_named(status, "server")["threads_in_place"], 1);
}

TEST_F(ManagerTest, InterruptsFollowThePolicyAndAreReadBack) {
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,2\"\n");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    const CpuSet both = *CpuSet::parse_list(machine_.irq(30)) | *CpuSet::parse_list(machine_.irq(31));
    EXPECT_EQ(both.to_list(), "0,2");
    const auto status = instance.status();
    ASSERT_GE(status["queues"].size(), 2U);
    for (const auto& queue : status["queues"]) {
        EXPECT_EQ(queue["present"], queue["wanted"]) << queue.dump();
        EXPECT_EQ(queue["policy"], "nic");
        EXPECT_EQ(queue["nic"], "eth0");
    }
    for (const char* subject : {"eth0", "irq:30", "eth0-TxRx-0"}) {
        const auto answer = instance.explain(subject);
        EXPECT_EQ(answer["subject"], subject);
        ASSERT_FALSE(answer["queues"].empty()) << subject;
        EXPECT_NE(answer["queues"][0]["reason"], "");
    }
    instance.stop();
    EXPECT_EQ(machine_.irq(30), "0-3");
    EXPECT_EQ(machine_.irq(31), "0-3");
}

TEST_F(ManagerTest, ACpusetCutsTheMaskOrLeavesTheThreadAlone) {
    machine_.policy("wide", "match: {comm: wide}\ncpus: \"0-1\"\nbind: set\n");
    machine_.policy("apart", "match: {comm: apart}\ncpus: \"1\"\nbind: set\n");
    machine_.process(10, "wide", "0");
    machine_.process(20, "apart", "0");
    for (const char* pid : {"10", "20"})
        machine_.tree().file(std::string("proc/") + pid + "/cpuset", "/cage\n");
    machine_.tree().file("sys/fs/cgroup/cage/cpuset.cpus.effective", "0\n");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "0");
    EXPECT_EQ(machine_.allowed(20, 20), "0");
    EXPECT_EQ(instance.enforcer().applied, 0U) << "the kernel would grant nothing else";
    EXPECT_EQ(state_of(instance.status(), 10, 10), "in place");
    EXPECT_EQ(state_of(instance.status(), 20, 20), "outside its cpuset");
    const auto answer = instance.explain("20");
    EXPECT_EQ(answer["threads"][0]["reason"], "its cpuset (0) has none of the policy's CPUs");
    machine_.tree().file("sys/fs/cgroup/cage/cpuset.cpus.effective", "0-2\n");
    instance.pass();
    EXPECT_EQ(machine_.allowed(20, 20), "1") << "read again with each pass";
}

TEST_F(ManagerTest, NamesOfAnyBytesAreMatchedAndShownAsUtf8) {
    machine_.policy("any", "match: {comm: \"*bad*\"}\ncpus: \"2\"\nbind: set\n");
    machine_.process(10, "\xff\xfe"
                         "bad\"\\\x1b[2J");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    const auto status = instance.status(); // parses
    EXPECT_EQ(status["processes"][0]["comm"], "\xef\xbf\xbd\xef\xbf\xbd"
                                              "bad\"\\\x1b[2J");
    EXPECT_TRUE(instance.explain_text("10"));
}

TEST_F(ManagerTest, NamesThatTurnTheDirectionOfWritingAreEscapedInJson) {
    machine_.policy("any", "match: {comm: \"*bad*\"}\ncpus: \"2\"\nbind: set\n");
    const std::string name = "\u202e\u2066bad\u2028\x7f";
    machine_.process(10, name);
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(instance.status()["processes"][0]["comm"], name) << "a program reads the name as it is";
    for (const auto& text : {instance.status_text().full(), instance.explain_text("10")->full()}) {
        EXPECT_NE(text.find("\\u202e\\u2066bad\\u2028\\u007f"), std::string::npos) << text;
        EXPECT_EQ(text.find("\u202e"), std::string::npos);
    }
}

TEST_F(ManagerTest, ProcessesThatAPassCannotReadStayKnown) {
    machine_.policy("server", "match: {comm: server}\ncpus: \"2\"\nbind: set\n");
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_TRUE(instance.knows(10));
    std::filesystem::rename(machine_.path("proc/10/stat"), machine_.path("stat"));
    std::filesystem::create_symlink("stat", machine_.path("proc/10/stat")); // ELOOP, as EMFILE might be
    instance.pass();
    EXPECT_TRUE(instance.knows(10)) << "that it was not seen does not mean that it has gone";
    std::filesystem::remove(machine_.path("proc/10/stat"));
    instance.pass();
    EXPECT_FALSE(instance.knows(10));
}

} // namespace
} // namespace affinityd::app

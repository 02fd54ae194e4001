// SPDX-License-Identifier: Apache-2.0
// The manager over a machine out of files: passes, events, reload, release.
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using nlohmann::json;
using test::Instance;
using test::state_of;

class ManagerTest : public testing::Test {
  protected:
    test::Machine machine_;
    static constexpr const char* on_two = "match: {comm: server}\ncpus: \"2\"\nbind: set\n";

    static json policy_named(const json& status, const std::string& name) {
        for (const auto& policy : status["policies"])
            if (policy["name"] == name) return policy;
        return nullptr;
    }
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
    EXPECT_EQ(policy["cpus"], "2");
    EXPECT_EQ(policy["active"], true);
    EXPECT_EQ(state_of(status, 10, 11), "in place");
    EXPECT_EQ(state_of(status, 20, 20), "not under policy");
}

TEST_F(ManagerTest, ADryRunTellsAndChangesNothing) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    Instance instance(machine_, false);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    EXPECT_EQ(instance.journal().size(), 0U);
    EXPECT_EQ(instance.status()["dry_run"], true);
    EXPECT_EQ(instance.plan()["actions"].size(), 1U);
    instance.manager().stop();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
}

TEST_F(ManagerTest, APassIsCutIntoSlicesAndAskedForWork) {
    machine_.policy("server", on_two);
    for (int pid = 10; pid < 15; ++pid)
        machine_.process(pid, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    unsigned now = 0;
    instance.manager().on_work(
        [&](Manager::Urgency urgency) { now += urgency == Manager::Urgency::now ? 1 : 0; });
    instance.manager().begin_reconcile(false);
    EXPECT_EQ(now, 1U) << "who begins a pass must be heard by the loop";
    unsigned steps = 0;
    for (unsigned before = 0; !instance.manager().reconcile_step([] { return true; });
         before = instance.enforcer().applied, ++steps) {
        EXPECT_TRUE(instance.manager().reconciling());
        EXPECT_LE(instance.enforcer().applied, before + 1)
            << "one thread a slice, when there is no time at all";
    }
    EXPECT_GE(steps, 5U);
    EXPECT_EQ(instance.enforcer().applied, 5U);
    EXPECT_FALSE(instance.manager().reconciling());
    EXPECT_TRUE(instance.manager().reconcile_step([] { return false; })) << "none under way";
}

TEST_F(ManagerTest, AProcessOfManyThreadsIsCutToo) {
    machine_.policy("server", std::string(on_two) + "threads: [{name: \"io-*\", cpus: \"3\", bind: cpu}]\n");
    machine_.process(10, "server");
    for (int tid = 11; tid < 15; ++tid)
        machine_.thread(10, tid, "worker", "0-3", 1, 0, 100 + tid);
    Instance instance(machine_);
    auto& manager = instance.manager();
    ASSERT_TRUE(manager.start());
    manager.begin_reconcile(false);
    unsigned steps = 0;
    // Once two threads are placed, events tell of what a fact read before does not know.
    while (!manager.reconcile_step([] { return true; }) && ++steps < 100) {
        if (instance.enforcer().applied != 2) continue;
        machine_.thread(10, 13, "io-1", "0-3", 1, 0, 113);
        machine_.thread(10, 15, "io-2", "0-3", 1, 0, 115);
        manager.thread_changed(10, 13);
        manager.thread_changed(10, 15);
        machine_.end_thread(10, 14);
        manager.task_gone(10, 14);
    }
    EXPECT_GT(steps, 5U);
    EXPECT_LT(steps, 100U);
    for (const int tid : {10, 11, 12})
        EXPECT_EQ(machine_.allowed(10, tid), "2") << tid;
    EXPECT_EQ(machine_.allowed(10, 13), "3");
    EXPECT_EQ(machine_.allowed(10, 15), "3");
    EXPECT_EQ(state_of(instance.status(), 10, 15), "in place") << "born while the pass was elsewhere";
    EXPECT_EQ(state_of(instance.status(), 10, 14), "not under policy");
    EXPECT_EQ(instance.journal().size(), 5U);
    EXPECT_EQ(instance.enforcer().applied, 5U) << "each once";
}

TEST_F(ManagerTest, AProcessThatEndsWhileItIsLookedAtIsLeft) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    for (int tid = 11; tid < 15; ++tid)
        machine_.thread(10, tid, "worker", "0-3", 1, 0, 100 + tid);
    Instance instance(machine_);
    auto& manager = instance.manager();
    ASSERT_TRUE(manager.start());
    manager.begin_reconcile(false);
    while (!manager.reconcile_step([] { return true; }) && instance.enforcer().applied < 2) {
    }
    machine_.end(10);
    for (int tid = 14; tid >= 10; --tid)
        manager.task_gone(10, tid);
    machine_.process(10, "other", "2", 1, 0, 500); // the next of this number has this mask of its own
    while (!manager.reconcile_step([] { return true; })) {
    }
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_FALSE(manager.is_known(10));
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
    EXPECT_FALSE(instance.manager().has_processes());
    machine_.process(10, "server");
    instance.manager().process_changed(10);
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_TRUE(instance.manager().is_known(10));
    machine_.thread(10, 12, "worker", "0-3", 1, 0, 102);
    instance.manager().thread_changed(10, 12);
    EXPECT_EQ(machine_.allowed(10, 12), "2");
    std::size_t processes = 0, threads = 0;
    instance.manager().count(processes, threads);
    EXPECT_EQ(processes, 1U);
    EXPECT_EQ(threads, 2U);
    EXPECT_EQ(instance.status()["fast_path"], 2);

    machine_.end_thread(10, 12);
    instance.manager().task_gone(10, 12);
    EXPECT_EQ(instance.journal().size(), 1U);
    machine_.end(10);
    instance.manager().task_gone(10, 10);
    EXPECT_EQ(instance.journal().size(), 0U);
    EXPECT_FALSE(instance.manager().has_processes());
}

TEST_F(ManagerTest, EventsOfWhatDoesNotExistDoNothing) {
    machine_.policy("server", on_two);
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    for (const int number : {-1, 0, 999, 2147483647}) {
        instance.manager().process_changed(number);
        instance.manager().process_changed(number, number);
        instance.manager().thread_changed(number, number);
        instance.manager().task_gone(number, number);
        EXPECT_FALSE(instance.manager().is_known(number));
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
    EXPECT_FALSE(instance.manager().is_known(10));
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
    instance.manager().process_changed(10);
    EXPECT_EQ(machine_.allowed(10, 10), "1-3");
    EXPECT_FALSE(instance.manager().is_known(10));
}

TEST_F(ManagerTest, AChildThatNobodyWantsGetsItsCreatorsOriginal) {
    machine_.policy("server", on_two);
    machine_.process(10, "server", "1-3");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(50, "child", "2", 10);
    instance.manager().process_changed(50, 10);
    EXPECT_EQ(machine_.allowed(50, 50), "1-3");
    machine_.process(51, "loner", "2", 1);
    instance.manager().process_changed(51, 1);
    EXPECT_EQ(machine_.allowed(51, 51), "2") << "its own wish";
}

TEST_F(ManagerTest, AReloadWithABadFileLeavesTheRunningSet) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.policy("server", "match: {comm: server}\ncpuz: \"3\"\n");
    const auto refused = instance.manager().reload();
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("server.yaml:3:1"), std::string::npos) << refused.error().message;
    EXPECT_NE(refused.error().message.find("cpuz"), std::string::npos);
    EXPECT_EQ(instance.log().times("the running policies stay"), 1U);
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "2");

    machine_.policy("server", "match: {comm: server}\ncpus: \"9\"\n");
    const auto impossible = instance.manager().reload();
    ASSERT_FALSE(impossible) << "CPU 9 does not exist";
    EXPECT_NE(impossible.error().message.find("server.yaml:3:"), std::string::npos)
        << impossible.error().message;

    machine_.policy("server", "match: {comm: server}\ncpus: \"3\"\nbind: set\n");
    ASSERT_TRUE(instance.manager().reload());
    EXPECT_TRUE(instance.manager().reconciling()) << "a reload is followed by a pass";
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "3");
}

TEST_F(ManagerTest, APolicyThatIsRemovedLetsGo) {
    machine_.policy("server", on_two);
    machine_.policy("zz", "match: {comm: never}\n");
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    std::filesystem::remove(machine_.path("policies/server.yaml"));
    ASSERT_TRUE(instance.manager().reload());
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    EXPECT_EQ(instance.journal().size(), 0U);
    EXPECT_EQ(policy_named(instance.status(), "server"), nullptr);
}

TEST_F(ManagerTest, WithBadPoliciesItDoesNotStart) {
    machine_.policy("server", "match: {comm: [}\n");
    Instance instance(machine_);
    const auto started = instance.manager().start();
    ASSERT_FALSE(started);
    EXPECT_NE(started.error().message.find("server.yaml:"), std::string::npos);
}

TEST_F(ManagerTest, ReleasedStaysReleasedUntilApply) {
    machine_.policy("server", on_two);
    machine_.policy("second", "match: {comm: second}\ncpus: \"1\"\nbind: set\n");
    machine_.process(10, "server");
    machine_.process(11, "server");
    machine_.process(20, "second");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_TRUE(instance.manager().release("10"));
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    EXPECT_EQ(machine_.allowed(11, 11), "2");
    ASSERT_EQ(instance.manager().release("server").value_or(""), "1 subjects put back");
    instance.finish();
    EXPECT_EQ(machine_.allowed(11, 11), "0-3");
    EXPECT_EQ(machine_.allowed(20, 20), "1");
    EXPECT_EQ(policy_named(instance.status(), "server")["released"], true);
    EXPECT_EQ(policy_named(instance.status(), "server")["active"], false);
    EXPECT_EQ(policy_named(instance.status(), "second")["released"], false);
    ASSERT_TRUE(instance.manager().release(""));
    instance.finish();
    EXPECT_EQ(machine_.allowed(20, 20), "0-3");
    instance.manager().process_changed(20);
    EXPECT_EQ(machine_.allowed(20, 20), "0-3") << "events do not take it up again";
    instance.manager().apply();
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_EQ(machine_.allowed(11, 11), "2");
    EXPECT_EQ(machine_.allowed(20, 20), "1");
}

TEST_F(ManagerTest, OnlyWhatIsThereIsReleased) {
    machine_.policy("server", on_two);
    machine_.process(20, "other");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    for (const char* what :
         {"20", "999", "nobody", "-1", "server ", "../server", "99999999999999999999", "\x01"}) {
        const auto released = instance.manager().release(what);
        ASSERT_FALSE(released) << what;
        EXPECT_EQ(released.error().subject, what);
    }
}

TEST_F(ManagerTest, LostEventsAreCountedAndLookedFor) {
    machine_.policy("server", on_two);
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(10, "server");
    instance.manager().events_lost();
    EXPECT_TRUE(instance.manager().reconciling());
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_EQ(instance.status()["events_lost"], 1);
}

TEST_F(ManagerTest, ARefusalIsToldAndTheRestIsDone) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    machine_.process(11, "server");
    Instance instance(machine_);
    instance.enforcer()
        .refuse[planner::to_string(planner::Subject{planner::TaskMask{{10, 100}, 10, "server"}})] =
        enforcer::Outcome::not_permitted;
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
        const auto explained = instance.manager().explain(subject);
        ASSERT_TRUE(explained) << subject;
        const auto answer = json::parse(*explained);
        EXPECT_EQ(answer["subject"], subject);
        ASSERT_FALSE(answer["queues"].empty()) << subject;
        EXPECT_NE(answer["queues"][0]["reason"], "");
    }
    instance.manager().stop();
    EXPECT_EQ(machine_.irq(30), "0-3");
    EXPECT_EQ(machine_.irq(31), "0-3");
}

TEST_F(ManagerTest, ExplainSaysWhyAndWhyNot) {
    machine_.policy("server", on_two);
    machine_.process(10, "server", "1-3");
    machine_.thread(10, 12, "worker", "0-3", 1, 0, 102);
    machine_.tree().file("proc/12/status",
                         machine_.all_of("proc/10/task/12/status")); // hidden in listings, but there
    machine_.process(20, "other");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    const auto wanted = json::parse(instance.manager().explain("10").value_or("{}"));
    EXPECT_EQ(wanted["pid"], 10);
    EXPECT_EQ(wanted["policy"], "server");
    ASSERT_EQ(wanted["threads"].size(), 2U);
    EXPECT_EQ(wanted["threads"][0]["wanted"], "2");
    EXPECT_EQ(wanted["threads"][0]["present"], "2");
    EXPECT_EQ(wanted["threads"][0]["original"], "1-3");
    EXPECT_FALSE(wanted["threads"][0].contains("would_change"));
    EXPECT_EQ(json::parse(instance.manager().explain("12").value_or("{}"))["pid"], 10)
        << "a thread's number names its process";
    const auto other = json::parse(instance.manager().explain("20").value_or("{}"));
    EXPECT_EQ(other["policy"], nullptr);
    ASSERT_EQ(other["considered"].size(), 1U);
    EXPECT_EQ(other["considered"][0]["matched"], false);
    EXPECT_EQ(other["considered"][0]["found"], "other");
    EXPECT_EQ(other["considered"][0]["wanted"], "server");
    for (const char* subject :
         {"", "999", "-1", "eth9", "irq:999", "irq:", "4294967296", "../10", "10/task/10", "10 ", "\xff"})
        EXPECT_FALSE(instance.manager().explain(subject)) << subject;
}

TEST_F(ManagerTest, ACpusetCutsTheMaskOrLeavesNothing) {
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
    const auto answer = json::parse(instance.manager().explain("20").value_or("{}"));
    EXPECT_EQ(answer["threads"][0]["reason"], "its cpuset (0) has none of the policy's CPUs");
    machine_.tree().file("sys/fs/cgroup/cage/cpuset.cpus.effective", "0-2\n");
    instance.pass();
    EXPECT_EQ(machine_.allowed(20, 20), "1") << "read again with each pass";
}

TEST_F(ManagerTest, NamesAreAnyBytes) {
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
    EXPECT_TRUE(instance.manager().explain("10"));
}

} // namespace
} // namespace affinityd::app

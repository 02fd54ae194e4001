// SPDX-License-Identifier: Apache-2.0
// Policies with `exclusive`: releases, what others get, and what is said; over a machine out of files.
#include "simulated.hpp"

#include <chrono>
#include <thread>

namespace affinityd::app {
namespace {

using test::Instance;
using test::policy_named;
using test::state_of;

class Claims : public testing::Test {
  protected:
    Claims() {
        machine_.policy("server", "match: {comm: server}\ncpus: \"2\"\nbind: set\nexclusive: true\n");
        machine_.policy("wide", "match: {comm: wide}\ncpus: \"1-2\"\nbind: set\n");
        machine_.process(10, "server");
        machine_.process(20, "other");
        machine_.process(30, "wide");
    }
    void start() {
        ASSERT_TRUE(instance_.manager().start());
        instance_.pass();
        ASSERT_EQ(machine_.allowed(10, 10), "2");
        ASSERT_EQ(machine_.allowed(20, 20), "0-1,3");
        ASSERT_EQ(machine_.allowed(30, 30), "1");
    }
    [[nodiscard]] std::vector<std::string> problems(const std::string& policy) {
        std::vector<std::string> list;
        const auto status = instance_.status();
        for (const auto& problem : status["problems"])
            if (problem["policy"] == policy) list.push_back(problem["message"]);
        return list;
    }
    test::Machine machine_;
    Instance instance_{machine_};
};

TEST_F(Claims, OtherPoliciesHaveTheCpusOfAReleasedOne) {
    start();
    EXPECT_EQ(problems("wide"),
              std::vector<std::string>{"only CPU 1 is used, as CPU 2 is reserved for server (exclusive)"});
    ASSERT_TRUE(instance_.release("server"));
    instance_.finish();
    EXPECT_EQ(machine_.allowed(30, 30), "1-2");
    EXPECT_EQ(machine_.allowed(20, 20), "0-3");
    EXPECT_TRUE(problems("wide").empty());
    instance_.apply();
    instance_.finish();
    EXPECT_EQ(machine_.allowed(30, 30), "1");
}

TEST_F(Claims, TheNewestProblemComesFirstAndEachKeepsItsTime) {
    start();
    const auto first = instance_.status()["problems"];
    ASSERT_EQ(first.size(), 1U);
    EXPECT_EQ(first[0]["hint"], "write cpus: 1 in wide.yaml, which is what it uses now");
    std::this_thread::sleep_for(std::chrono::milliseconds(1100)); // times are told in seconds
    machine_.end(10);
    instance_.pass();
    const auto both = instance_.status()["problems"];
    ASSERT_EQ(both.size(), 2U);
    EXPECT_EQ(both[0]["policy"], "server") << "whose claim is idle now";
    EXPECT_GT(both[0]["since"], first[0]["since"]);
    EXPECT_EQ(both[1], first[0]);
}

TEST_F(Claims, AReleaseHoldsWhileTheMachineIsReadAgain) {
    start();
    ASSERT_TRUE(instance_.release("server"));
    instance_.finish();
    machine_.tree().file("sys/devices/system/cpu/online", "0-2\n");
    instance_.pass(true);
    EXPECT_EQ(machine_.allowed(30, 30), "1-2");
    ASSERT_TRUE(instance_.reload());
    instance_.finish();
    EXPECT_EQ(machine_.allowed(30, 30), "1") << "it ends with a reload";
}

TEST_F(Claims, AReleasedProcessIsNotKeptOffByEventsOrPasses) {
    start();
    ASSERT_TRUE(instance_.release("10"));
    instance_.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    instance_.tasks().process_changed(10);
    instance_.finish();
    instance_.pass(true);
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    EXPECT_EQ(machine_.allowed(20, 20), "0-1,3") << "the claim is in force";
    const auto explained = instance_.explain("10");
    EXPECT_TRUE(explained["released"]);
    EXPECT_EQ(explained["threads"][0]["reason"], "released by hand");
    instance_.apply();
    instance_.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
}

TEST_F(Claims, TasksOfAPolicyWithoutAnyCpuLeftAreKeptOffToo) {
    start();
    machine_.tree().file("sys/devices/system/cpu/online", "0,2-3\n");
    machine_.process(30, "wide", "0,2-3"); // its only CPU has gone
    instance_.pass(true);
    EXPECT_EQ(machine_.allowed(30, 30), "0,3");
    EXPECT_EQ(problems("wide"),
              std::vector<std::string>{"no CPU is left, as CPU 2 is reserved for server (exclusive)"});
    EXPECT_EQ(state_of(instance_.status(), 30, 30), "kept off");
    EXPECT_EQ(instance_.explain("30")["kept_off"], "kept off CPU 2: exclusive of server");
    machine_.tree().file("sys/devices/system/cpu/online", "0-3\n");
    instance_.pass(true);
    EXPECT_EQ(machine_.allowed(30, 30), "1");
}

TEST_F(Claims, WhoIsKeptOffIsTold) {
    start();
    const auto explained = instance_.explain("20");
    EXPECT_EQ(explained["kept_off"], "kept off CPU 2: exclusive of server");
    EXPECT_EQ(explained["threads"][0]["reason"], "kept off CPU 2: exclusive of server");
    EXPECT_FALSE(instance_.explain("30").contains("kept_off")) << "its policy has placed it";
}

TEST_F(Claims, AnIdleClaimIsAProblemOnceAllProcessesWereSeen) {
    ASSERT_TRUE(instance_.manager().start());
    EXPECT_TRUE(problems("server").empty());
    instance_.pass();
    EXPECT_TRUE(problems("server").empty());
    machine_.process(10, "renamed");
    instance_.pass();
    EXPECT_EQ(
        problems("server"),
        std::vector<std::string>{"CPU 2 is barred to all others, and no process is under this policy now"});
}

TEST_F(Claims, WhatStatusShowsIsReadAgainAndWhatIsPutRightIsCounted) {
    start();
    machine_.process(30, "wide", "3"); // somebody else's mask
    auto status = instance_.status();
    EXPECT_EQ(state_of(status, 30, 30), "drifted");
    auto policy = policy_named(status, "wide");
    EXPECT_EQ(policy["threads_in_place"], 0);
    EXPECT_EQ(policy["threads_drifted"], 1);
    EXPECT_EQ(policy["drift_put_right"], 0);
    instance_.pass();
    EXPECT_EQ(machine_.allowed(30, 30), "1") << "asking has hidden nothing from the pass";
    policy = policy_named(instance_.status(), "wide");
    EXPECT_EQ(policy["threads_in_place"], 1);
    EXPECT_EQ(policy["threads_drifted"], 0);
    EXPECT_EQ(policy["drift_put_right"], 1);
    EXPECT_EQ(policy_named(instance_.status(), "server")["drift_put_right"], 0);
    EXPECT_EQ(instance_.log().times("policy wide: task 30"), 1U) << instance_.log().text();
}

TEST_F(Claims, StatusShowsAnInterruptAsItIsAndTheGlanceStillSeesIt) {
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0\"\n");
    start();
    machine_.set_irq(30, "3");
    const auto queues = instance_.status()["queues"];
    EXPECT_EQ(queues[0]["present"], "3") << queues[0].dump();
    for (const auto& target : instance_.manager().in_force().world->placements().queues)
        instance_.manager().queues().glance(target);
    EXPECT_EQ(machine_.irq(30), "0");
    EXPECT_EQ(policy_named(instance_.status(), "nic")["drift_put_right"], 1);
}

} // namespace
} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
// The manager's commands over a machine out of files: status, plan, explain, reload, release, and the end.
#include "simulated.hpp"

#include <algorithm>

namespace affinityd::app {
namespace {

using nlohmann::json;
using test::Instance;
using test::policy_named;
using test::state_of;

class CommandsTest : public testing::Test {
  protected:
    test::Machine machine_;
    static constexpr const char* on_two = "match: {comm: server}\ncpus: \"2\"\nbind: set\n";
    static constexpr uid_t user = 1000, other_user = 1001; ///< processes of the machine are the user's

    /// Several processes, threads and queues under policy.
    void many() const {
        machine_.policy("server", on_two);
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0\"\n");
        for (int pid = 100; pid < 120; ++pid) {
            machine_.process(pid, "server");
            for (int tid = 1; tid < 5; ++tid)
                machine_.thread(pid, pid * 100 + tid, "worker", "0-3", 1, 0, 100 + tid);
        }
    }
    /// Subjects of a plan with what they are to be changed to, sorted.
    static std::vector<std::string> changes(const json& plan) {
        std::vector<std::string> list;
        for (const auto& action : plan["actions"]) {
            const auto who = action["kind"] == "task"  ? "task " + std::to_string(action["tid"].get<int>())
                             : action["kind"] == "irq" ? "IRQ " + std::to_string(action["irq"].get<int>())
                                                       : action["nic"].get<std::string>() + " " +
                                                             action["queue"].get<std::string>();
            list.push_back(who);
        }
        std::ranges::sort(list);
        return list;
    }
    /// What the enforcer was asked to do since the `from`th change, in the same form.
    static std::vector<std::string> done(Instance& instance, std::size_t from) {
        std::vector<std::string> list;
        const auto& all = instance.enforcer().done;
        for (std::size_t i = from; i < all.size(); ++i) {
            const auto text = machine::to_string(all[i]);
            list.push_back(text.substr(0, text.find(" (")));
        }
        std::ranges::sort(list);
        return list;
    }
    /// Plans, passes, and compares.
    void expect_as_planned(Instance& instance, const std::string& what) {
        const auto planned = changes(instance.plan());
        const auto before = instance.enforcer().done.size();
        instance.pass();
        EXPECT_EQ(planned, done(instance, before)) << what;
    }
};

TEST_F(CommandsTest, AReloadWithABadFileLeavesTheRunningSet) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.policy("server", "match: {comm: server}\ncpuz: \"3\"\n");
    const auto refused = instance.reload();
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("server.yaml:3:1"), std::string::npos) << refused.error().message;
    EXPECT_NE(refused.error().message.find("cpuz"), std::string::npos);
    EXPECT_EQ(instance.log().times("its last good version stays in force"), 1U);
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "2");

    machine_.policy("server", "match: {comm: server}\ncpus: \"9\"\n");
    const auto impossible = instance.reload();
    ASSERT_FALSE(impossible) << "CPU 9 does not exist";
    EXPECT_NE(impossible.error().message.find("server.yaml:3:"), std::string::npos)
        << impossible.error().message;

    machine_.policy("server", "match: {comm: server}\ncpus: \"3\"\nbind: set\n");
    ASSERT_TRUE(instance.reload());
    EXPECT_TRUE(instance.manager().work().passing()) << "a reload is followed by a pass";
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "3");
}

TEST_F(CommandsTest, KindsOfMeasurementsThatDoNotExistAreRefused) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    for (const char* kind : {"", "ttcp", "models", "passive"})
        EXPECT_TRUE(instance.manager().history(kind)) << kind;
    for (const char* kind : {"k1", "TTCP", "ttcp ", "'; DROP TABLE measurement"})
        EXPECT_FALSE(instance.manager().history(kind)) << kind;
}

TEST_F(CommandsTest, ReleasedStaysReleasedUntilApply) {
    machine_.policy("server", on_two);
    machine_.policy("second", "match: {comm: second}\ncpus: \"1\"\nbind: set\n");
    machine_.process(10, "server");
    machine_.process(11, "server");
    machine_.process(20, "second");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_TRUE(instance.release("10"));
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
    EXPECT_EQ(machine_.allowed(11, 11), "2");
    ASSERT_EQ(json::parse(instance.release("server").value_or("{}")).value("message", ""),
              "server: 1 thread put back");
    instance.finish();
    EXPECT_EQ(machine_.allowed(11, 11), "0-3");
    EXPECT_EQ(machine_.allowed(20, 20), "1");
    EXPECT_EQ(policy_named(instance.status(), "server")["released"], true);
    EXPECT_EQ(policy_named(instance.status(), "server")["active"], false);
    EXPECT_EQ(policy_named(instance.status(), "second")["released"], false);
    ASSERT_TRUE(instance.release(""));
    instance.finish();
    EXPECT_EQ(machine_.allowed(20, 20), "0-3");
    instance.tasks().process_changed(20);
    EXPECT_EQ(machine_.allowed(20, 20), "0-3") << "events do not take it up again";
    instance.apply();
    instance.finish();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    EXPECT_EQ(machine_.allowed(11, 11), "2");
    EXPECT_EQ(machine_.allowed(20, 20), "1");
}

TEST_F(CommandsTest, WhatIsNeitherAPolicyNorAProcessUnderOneIsNotReleased) {
    machine_.policy("server", on_two);
    machine_.process(20, "other");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    for (const char* what :
         {"20", "999", "nobody", "-1", "server ", "../server", "99999999999999999999", "\x01"}) {
        const auto released = instance.release(what);
        ASSERT_FALSE(released) << what;
        EXPECT_EQ(released.error().subject, what);
    }
}

TEST_F(CommandsTest, ExplainGivesMasksOriginalsAndWhyAPolicyDidNotMatch) {
    machine_.policy("server", on_two);
    machine_.process(10, "server", "1-3");
    machine_.thread(10, 12, "worker", "0-3", 1, 0, 102);
    machine_.tree().file("proc/12/status",
                         machine_.all_of("proc/10/task/12/status")); // hidden in listings, but there
    machine_.process(20, "other");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    const auto wanted = instance.explain("10");
    EXPECT_EQ(wanted["pid"], 10);
    EXPECT_EQ(wanted["policy"], "server");
    ASSERT_EQ(wanted["threads"].size(), 2U);
    EXPECT_EQ(wanted["threads"][0]["wanted"], "2");
    EXPECT_EQ(wanted["threads"][0]["present"], "2");
    EXPECT_EQ(wanted["threads"][0]["original"], "1-3");
    EXPECT_FALSE(wanted["threads"][0].contains("would_change"));
    EXPECT_EQ(instance.explain("12")["pid"], 10) << "a thread's number names its process";
    const auto other = instance.explain("20");
    EXPECT_EQ(other["policy"], nullptr);
    ASSERT_EQ(other["considered"].size(), 1U);
    EXPECT_EQ(other["considered"][0]["matched"], false);
    EXPECT_EQ(other["considered"][0]["found"], "other");
    EXPECT_EQ(other["considered"][0]["wanted"], "server");
    for (const char* subject :
         {"", "999", "-1", "eth9", "irq:999", "irq:", "4294967296", "../10", "10/task/10", "10 ", "\xff"})
        EXPECT_FALSE(instance.explain_text(subject)) << subject;
}

TEST_F(CommandsTest, AReusedPidOfAReleasedProcessIsPlaced) {
    machine_.policy("server", on_two);
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_TRUE(instance.release("10"));
    instance.finish();
    ASSERT_EQ(machine_.allowed(10, 10), "0-3");
    machine_.end(10);
    machine_.process(10, "server", "0-3", 1, 0, 500); // no event said that the first one ended
    instance.tasks().process_changed(10);
    EXPECT_EQ(machine_.allowed(10, 10), "2");
    instance.pass();
    EXPECT_EQ(machine_.allowed(10, 10), "2");
}

TEST_F(CommandsTest, APolicyWithANumberForANameReleasesNoProcessOfThatNumber) {
    machine_.policy("server", on_two);
    machine_.policy("123", "match: {comm: other}\ncpus: \"1\"\nbind: set\n");
    machine_.process(123, "server");
    machine_.process(20, "other");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_TRUE(instance.release("123"));
    instance.finish();
    EXPECT_EQ(machine_.allowed(20, 20), "0-3") << "the policy's process";
    EXPECT_EQ(machine_.allowed(123, 123), "2") << "the process of that number";
    instance.tasks().process_changed(123);
    EXPECT_EQ(machine_.allowed(123, 123), "2");
}

TEST_F(CommandsTest, ThePlanListsWhatTheNextPassDoes) {
    many();
    machine_.policy("lonely", "match: {comm: lonely}\ncpus: \"3\"\nexclusive: true\n");
    machine_.process(10, "foreign");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    EXPECT_EQ(instance.plan()["actions"].size(), 100U + 1 + 4) << "threads, the foreign one, and queues";
    expect_as_planned(instance, "the first pass");
    expect_as_planned(instance, "nothing has changed");

    machine_.process(100, "server", "0-1"); // somebody else's masks
    machine_.set_irq(30, "3");
    machine_.process(10, "foreign", "3");
    expect_as_planned(instance, "masks set by others");
    EXPECT_EQ(machine_.allowed(10, 10), "3") << "it was put there by somebody who knew";

    machine_.process(101, "renamed", "2");
    machine_.thread(101, 10101, "worker", "1-2", 1, 0, 101);
    expect_as_planned(instance, "a process that no policy wants any more, with a mask that is its own");
    EXPECT_EQ(machine_.allowed(101, 101), "0-2") << "off exclusive CPUs";

    machine_.process(500, "born", "2", 102);
    expect_as_planned(instance, "a child with its creator's mask");
}

TEST_F(CommandsTest, ThePlanListsOriginalsThatTheNextPassRestores) {
    many();
    {
        Instance crashed(machine_);
        ASSERT_TRUE(crashed.manager().start());
        crashed.pass();
    }
    machine_.set_irq(31, "3"); // no longer ours
    for (const char* file : {"policies/nic.yaml", "policies/server.yaml"})
        std::filesystem::remove(machine_.path(file));
    machine_.policy("unrelated", "match: {comm: unrelated}\n");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    EXPECT_EQ(instance.plan()["actions"].size(), 100U + 3);
    expect_as_planned(instance, "policies that went while no daemon ran");
    EXPECT_EQ(machine_.irq(30), "0-3");
    EXPECT_EQ(machine_.irq(31), "3");
}

TEST_F(CommandsTest, ThePlanLeavesOutWhatIsPutOff) {
    machine_.policy("server", on_two);
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0\"\n");
    machine_.process(10, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    for (unsigned round = 0; round < 10; ++round) {
        machine_.process(10, "server", "0-1");
        machine_.set_irq(30, "3");
        expect_as_planned(instance, "round " + std::to_string(round));
    }
    EXPECT_EQ(machine_.allowed(10, 10), "0-1") << "it is left alone by now";
    EXPECT_EQ(machine_.irq(30), "3");
    EXPECT_EQ(instance.plan()["actions"], json::array());
}

TEST_F(CommandsTest, AnswersComeInSlicesAndAreCompleteJson) {
    many();
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(100, "server", "0-1");
    std::optional<OwnedText> status, plan, explained;
    const auto into = [](std::optional<OwnedText>& place) {
        return [&place](Result<OwnedText> text) { place = std::move(*text); };
    };
    instance.manager().status(into(status));
    instance.manager().plan(into(plan));
    instance.manager().explain("100", into(explained));
    EXPECT_FALSE(status || plan || explained) << "nothing is read while somebody asks";
    unsigned slices = 0;
    while (!instance.short_step() && ++slices < 10'000) {
    }
    EXPECT_GT(slices, 20U + 20U + 5U) << "a process, or one of its threads, in a slice without time";
    ASSERT_TRUE(status && plan && explained);
    const auto all = json::parse(status->full());
    EXPECT_EQ(all["processes"].size(), 20U);
    EXPECT_EQ(all["processes"][0]["pid"], 100) << "in the order of their numbers";
    EXPECT_EQ(all["processes"][19]["threads"].size(), 5U);
    EXPECT_EQ(all["queues"].size(), 6U) << "two interrupts with two steering maps each";
    for (const char* key : {"policies", "problems", "units", "costs", "measurement", "refused", "online"})
        EXPECT_TRUE(all.contains(key)) << key;
    EXPECT_EQ(json::parse(plan->full())["actions"].size(), 1U);
    EXPECT_EQ(json::parse(explained->full())["threads"].size(), 5U);
}

TEST_F(CommandsTest, AnswersDuringAPassComeBeforeItsEnd) {
    many();
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.manager().begin_pass(false);
    bool is_answered = false;
    instance.manager().explain("100", [&](auto) { is_answered = true; });
    for (unsigned slices = 0; slices < 200 && !is_answered; ++slices)
        instance.short_step();
    EXPECT_TRUE(is_answered);
    EXPECT_TRUE(instance.manager().work().passing());
}

TEST_F(CommandsTest, AReloadWaitsForAnswersThatWereAskedForBefore) {
    many();
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    unsigned refused = 0, answered = 0;
    instance.manager().plan([&](auto text) { ++(text ? answered : refused); });
    instance.manager().status([&](auto text) { ++(text ? answered : refused); });
    instance.manager().explain("100", [&](auto text) { ++(text ? answered : refused); });
    for (int slice = 0; slice < 3; ++slice)
        instance.short_step();
    std::filesystem::remove(machine_.path("policies/nic.yaml"));
    ASSERT_TRUE(instance.reload());
    instance.finish();
    EXPECT_EQ(answered, 3U) << "no answer is half of one set of policies and half of another";
    EXPECT_EQ(refused, 0U);
}

TEST_F(CommandsTest, OtherUsersSeeNoNames) {
    machine_.policy("server", "match: {comm: secret}\ncpus: \"2\"\nbind: set\n");
    machine_.policy("other", "match: {comm: other}\ncpus: \"1\"\nbind: set\n");
    machine_.process(10, "secret");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    const auto plan = instance.plan_text();
    instance.pass();
    for (const auto& text : {instance.status_text(), plan, *instance.explain_text("10")}) {
        EXPECT_EQ(json::parse(text.full()), json::parse(text.seen_by(user))) << "its owner sees all";
        const auto seen = json::parse(text.seen_by(other_user));
        EXPECT_EQ(seen.dump().find("\"comm\":\"secret"), std::string::npos) << seen.dump();
        EXPECT_EQ(seen.dump().find("\"found\":\"secret"), std::string::npos) << seen.dump();
        EXPECT_NE(text.full().find("secret"), std::string::npos);
        const auto whole = json::parse(text.full());
        for (const auto& [key, value] : whole.items())
            EXPECT_TRUE(seen.contains(key)) << "the same keys: " << key;
    }
    const auto seen = json::parse(instance.status_text().seen_by(other_user));
    ASSERT_EQ(seen["processes"].size(), 1U);
    EXPECT_EQ(seen["processes"][0]["comm"], "");
    EXPECT_EQ(seen["processes"][0]["threads"][0]["comm"], "");
    EXPECT_EQ(seen["processes"][0]["threads"][0]["present"], "2") << "masks are no secret";
}

TEST_F(CommandsTest, ExplainNamesTheFileAndLineThatDecided) {
    machine_.policy("server", // version: 1 is the first line
                    "match: {comm: server}\ncpus: \"2\"\nbind: set\nthreads:\n"
                    "  - {name: \"io-*\", cpus: \"3\"}\n  - {name: \"gc\", cpus: \"1\"}\n");
    machine_.policy("unrelated", "match: {comm: unrelated}\n");
    machine_.process(10, "server");
    machine_.thread(10, 11, "io-1", "0-3", 1, 0, 101);
    machine_.thread(10, 12, "gc", "0-3", 1, 0, 102);
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    const auto answer = instance.explain("10");
    const auto file = machine_.path("policies/server.yaml");
    ASSERT_EQ(answer["threads"].size(), 3U);
    const auto decided = [&](std::size_t thread) {
        return answer["threads"][thread]["decided_by"].get<std::string>();
    };
    EXPECT_EQ(decided(0).substr(0, decided(0).rfind(':')), file);
    EXPECT_EQ(decided(1), file + ":6");
    EXPECT_EQ(decided(2), file + ":7");
    for (const auto& considered : answer["considered"]) {
        const auto at = considered["at"].get<std::string>();
        EXPECT_TRUE(at.starts_with(machine_.policies())) << at;
        EXPECT_NE(at.find(".yaml:"), std::string::npos) << at;
    }
    EXPECT_EQ(answer["threads"][1]["wanted"], "3");
}

TEST_F(CommandsTest, TheEndRestoresInSlices) {
    many();
    machine_.policy("stays", "match: {comm: stays}\ncpus: \"1\"\nbind: set\non_stop: keep\n");
    machine_.process(10, "stays");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_EQ(instance.journal().size(), 100U + 4 + 1);
    bool is_over = false;
    instance.manager().begin_stop([&] { is_over = true; });
    EXPECT_FALSE(is_over);
    unsigned slices = 0;
    for (auto before = instance.enforcer().applied; !is_over && slices < 10'000; ++slices) {
        instance.short_step();
        EXPECT_LE(instance.enforcer().applied, before + 1) << "one in a slice without time";
        before = instance.enforcer().applied;
    }
    EXPECT_TRUE(is_over);
    EXPECT_GT(slices, 100U);
    EXPECT_EQ(machine_.allowed(110, 11003), "0-3");
    EXPECT_EQ(machine_.irq(30), "0-3");
    EXPECT_EQ(machine_.allowed(10, 10), "1") << "on_stop: keep";
    EXPECT_EQ(instance.journal().size(), 0U);
}

TEST_F(CommandsTest, DuringTheEndCommandsAreRefusedAndEventsPlaceNothing) {
    many();
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    machine_.process(300, "server");
    for (int tid = 301; tid < 400; ++tid)
        machine_.thread(300, tid, "worker", "0-3", 1, 0, tid);
    instance.enforcer().takes = std::chrono::milliseconds(2);
    instance.tasks().process_changed(300); // most of its threads are still to be placed
    instance.enforcer().takes = std::chrono::milliseconds(0);
    bool is_over = false;
    instance.manager().begin_stop([&] { is_over = true; });
    instance.short_step();
    unsigned refused = 0;
    const auto count = [&](const auto& result) {
        refused += result ? 0 : 1;
        EXPECT_TRUE(!result && result.error().message == "the daemon is stopping");
    };
    auto& manager = instance.manager();
    manager.reload(count, Until::done, ReloadReason::asked);
    manager.release("server", count, Until::done);
    manager.status(count);
    manager.plan(count);
    manager.explain("100", count);
    manager.apply(count, Until::done);
    EXPECT_EQ(refused, 6U);
    manager.link_changed("eth0");
    manager.events_lost();
    manager.begin_pass(true);
    machine_.process(301, "server");
    for (unsigned slices = 0; !is_over && slices < 10'000; ++slices)
        instance.short_step();
    EXPECT_TRUE(is_over);
    manager.link_changed("eth0"); // systemd may owe an answer still, so the loop goes on for a while
    instance.apply();
    for (int i = 0; i < 50; ++i)
        instance.short_step();
    EXPECT_EQ(machine_.irq(30), "0-3");
    EXPECT_EQ(machine_.allowed(100, 100), "0-3");
    EXPECT_EQ(machine_.allowed(300, 300), "0-3");
    EXPECT_EQ(machine_.allowed(300, 399), "0-3");
    EXPECT_EQ(machine_.allowed(301, 301), "0-3");
    EXPECT_EQ(instance.journal().size(), 0U);
}

} // namespace
} // namespace affinityd::app

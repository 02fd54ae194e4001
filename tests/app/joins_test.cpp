// SPDX-License-Identifier: Apache-2.0
// Threads that put themselves somewhere, through the manager on a simulated machine.
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using test::Instance;
using test::Machine;
using Wish = JoinRequest::Wish;

constexpr auto with_slots =
    "match: {comm: server}\nallow_join: [io, arrivals]\nsettle: 0s\nspread: cpu\nbind: cpu\n"
    "cpus: \"1-3\"\nthreads:\n"
    "  - {slot: io, cpus: \"0\", bind: cpu}\n"
    "  - {slot: shut, cpus: \"0\", bind: cpu}\n";

class JoinsTest : public testing::Test {
  protected:
    JoinsTest() {
        machine_.policy("server", with_slots);
        machine_.process(10, "server");
        machine_.thread(10, 11, "worker");
        machine_.process(20, "other");
        EXPECT_TRUE(daemon_.manager().start());
        daemon_.pass();
    }
    JoinAnswer ask(Wish wish, int tid, const std::string& slot = {}, unsigned cpu = 0, int pid = 10) {
        const auto answer = daemon_.manager().talking().joins.ask({.pid = pid,
                                                                   .wish = wish,
                                                                   .own_pid = pid,
                                                                   .tid = tid,
                                                                   .slot = slot,
                                                                   .cpu = cpu,
                                                                   .is_alive = [this] { return is_alive_; }});
        daemon_.finish();
        return answer;
    }
    JoinOutcome join(int tid, const std::string& slot = "io") { return ask(Wish::join, tid, slot).outcome; }
    [[nodiscard]] std::string mask(int tid) const { return machine_.allowed(10, tid); }
    [[nodiscard]] nlohmann::json explained(int tid) {
        const auto explained = daemon_.explain("10");
        for (const auto& thread : explained["threads"])
            if (thread["tid"] == tid) return thread;
        return {};
    }
    bool is_alive_ = true;
    Machine machine_;
    Instance daemon_{machine_};
};

TEST_F(JoinsTest, AThreadIsPutIntoItsSlotAtOnceAndStaysThere) {
    ASSERT_NE(mask(11), "0");
    const auto answer = ask(Wish::join, 11, "io");
    EXPECT_EQ(answer.outcome, JoinOutcome::done);
    EXPECT_EQ(answer.policy, "server");
    EXPECT_EQ(answer.slot, "io");
    EXPECT_EQ(mask(11), "0");
    EXPECT_NE(mask(10), "0") << "only itself";
    daemon_.pass();
    EXPECT_EQ(mask(11), "0");
    EXPECT_EQ(join(11), JoinOutcome::done) << "again";
    const auto thread = explained(11);
    EXPECT_EQ(thread["joined"], "it joined the slot io");
    EXPECT_NE(thread["reason"].get<std::string>().find("thread rule 1"), std::string::npos) << thread;
    EXPECT_FALSE(explained(10).contains("joined"));
}

TEST_F(JoinsTest, StatusCountsThemByTheSlot) {
    const auto joined = [&] { return daemon_.status()["policies"][0]["joined"]; };
    EXPECT_EQ(joined(), nlohmann::json::parse(R"({"threads": 0, "slots": {"arrivals": 0, "io": 0}})"));
    ASSERT_EQ(join(11), JoinOutcome::done);
    ASSERT_EQ(ask(Wish::serve, 10, {}, 2).outcome, JoinOutcome::done);
    EXPECT_EQ(joined(), nlohmann::json::parse(R"({"threads": 2, "slots": {"arrivals": 1, "io": 1}})"));
    ASSERT_EQ(ask(Wish::leave, 11).outcome, JoinOutcome::done);
    EXPECT_EQ(joined()["threads"], 1);
    const std::string shut = with_slots;
    machine_.policy("server", shut.substr(0, shut.find("allow_join")) + shut.substr(shut.find("settle")));
    ASSERT_TRUE(daemon_.reload());
    EXPECT_FALSE(daemon_.status()["policies"][0].contains("joined")) << "nobody may join";
}

TEST_F(JoinsTest, ItLeavesAndGoesByItsNameAgain) {
    ASSERT_EQ(join(11), JoinOutcome::done);
    EXPECT_EQ(ask(Wish::leave, 11).outcome, JoinOutcome::done);
    EXPECT_NE(mask(11), "0");
    EXPECT_EQ(ask(Wish::where, 11).slot, "");
    EXPECT_EQ(ask(Wish::leave, 11).outcome, JoinOutcome::done) << "it had joined nothing";
}

TEST_F(JoinsTest, ThePolicyDecides) {
    for (const char* slot : {"shut", "nowhere", "arrivals", ""})
        EXPECT_EQ(join(11, slot), JoinOutcome::not_allowed) << slot;
    EXPECT_EQ(ask(Wish::join, 20, "io", 0, 20).outcome, JoinOutcome::no_policy);
    EXPECT_EQ(machine_.allowed(20, 20), "0-3");
    EXPECT_NE(mask(11), "0");
}

TEST_F(JoinsTest, NobodyMovesAnothersThread) {
    EXPECT_EQ(ask(Wish::join, 11, "io", 0, 20).outcome, JoinOutcome::not_yours);
    EXPECT_EQ(join(20), JoinOutcome::not_yours);
    EXPECT_EQ(join(12), JoinOutcome::not_yours) << "no such thread";
    EXPECT_EQ(join(-5), JoinOutcome::not_yours);
    is_alive_ = false;
    EXPECT_EQ(join(11), JoinOutcome::not_yours) << "its number may be another's by now";
    EXPECT_NE(mask(11), "0");
}

TEST_F(JoinsTest, WhoLiesAboutItsNumbersPaysForTheSearch) {
    const auto answer = daemon_.manager().talking().joins.ask(
        {.pid = 10, .wish = Wish::where, .own_pid = 3, .tid = 999, .is_alive = [] { return true; }});
    EXPECT_EQ(answer.outcome, JoinOutcome::not_yours);
    EXPECT_GT(answer.cost, 40U) << "each of the latest threads was read";
}

TEST_F(JoinsTest, AReloadThatTakesTheSlotAwayAndGivesItBack) {
    ASSERT_EQ(join(11), JoinOutcome::done);
    const std::string shut = with_slots;
    machine_.policy("server", shut.substr(0, shut.find("io, ")) + shut.substr(shut.find("io, ") + 4));
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    daemon_.pass();
    EXPECT_NE(mask(11), "0");
    EXPECT_EQ(join(11), JoinOutcome::not_allowed);
    machine_.policy("server", with_slots);
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    daemon_.pass();
    EXPECT_EQ(mask(11), "0");
}

TEST_F(JoinsTest, ALaterThreadOfTheSameNumberHasJoinedNothing) {
    ASSERT_EQ(join(11), JoinOutcome::done);
    machine_.end_thread(10, 11);
    daemon_.tasks().task_gone(10, 11);
    machine_.thread(10, 11, "worker", "0-3", 1, 0, 500);
    daemon_.pass();
    EXPECT_NE(mask(11), "0");
    EXPECT_EQ(ask(Wish::where, 11).slot, "");
}

TEST_F(JoinsTest, WhoComesUnderAnotherPolicyHasJoinedNothingThere) {
    ASSERT_EQ(join(11), JoinOutcome::done);
    machine_.policy("another", "match: {comm: server}\npriority: 5\nallow_join: io\nspread: cpu\nbind: cpu\n"
                               "settle: 0s\nthreads: [{slot: io, cpus: \"2\", bind: cpu}, {cpus: \"3\"}]\n");
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    daemon_.pass();
    EXPECT_EQ(mask(11), "3");
    std::filesystem::remove(machine_.policies() + "/another.yaml");
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    daemon_.pass();
    EXPECT_NE(mask(11), "0") << "that was forgotten";
}

TEST_F(JoinsTest, WhoIsUnderNoPolicyForSomeTimeHasJoinedStill) {
    ASSERT_EQ(join(11), JoinOutcome::done);
    std::filesystem::remove(machine_.policies() + "/server.yaml");
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    daemon_.pass();
    ASSERT_EQ(mask(11), "0-3");
    machine_.policy("server", with_slots);
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    daemon_.pass();
    EXPECT_EQ(mask(11), "0");
}

TEST_F(JoinsTest, WhatWasReleasedStaysReleased) {
    ASSERT_TRUE(daemon_.release("10"));
    daemon_.finish();
    EXPECT_EQ(join(11), JoinOutcome::released);
    EXPECT_EQ(ask(Wish::serve, 11, "", 2).outcome, JoinOutcome::released);
    EXPECT_EQ(mask(11), "0-3");
}

TEST_F(JoinsTest, TheEndPutsItsOwnMaskBack) {
    ASSERT_EQ(join(11), JoinOutcome::done);
    daemon_.stop();
    EXPECT_EQ(mask(11), "0-3");
    EXPECT_EQ(join(11), JoinOutcome::no_daemon);
    EXPECT_EQ(mask(11), "0-3");
}

TEST_F(JoinsTest, AThreadServesWhereItsPacketsArrive) {
    const auto other = mask(11) == "3" ? 2U : 3U;
    const auto answer = ask(Wish::serve, 11, "", other);
    EXPECT_EQ(answer.outcome, JoinOutcome::done);
    EXPECT_TRUE(answer.serves);
    EXPECT_EQ(mask(11), std::to_string(other));
    daemon_.pass();
    EXPECT_EQ(mask(11), std::to_string(other));
    EXPECT_EQ(explained(11)["joined"], "it asked for where its packets arrive");
}

TEST_F(JoinsTest, ItServesWithinItsPolicyOnly) {
    const auto before = mask(11);
    EXPECT_EQ(ask(Wish::serve, 11, "", 0).outcome, JoinOutcome::no_slot);
    EXPECT_EQ(ask(Wish::serve, 11, "", 4'000'000).outcome, JoinOutcome::no_slot);
    EXPECT_EQ(mask(11), before);
    EXPECT_FALSE(ask(Wish::where, 11).serves);
    machine_.policy("server", "match: {comm: server}\nsettle: 0s\nspread: cpu\nbind: cpu\n");
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    EXPECT_EQ(ask(Wish::serve, 11, "", 2).outcome, JoinOutcome::not_allowed);
}

TEST_F(JoinsTest, ThreadsThatHaveOnlyTheirProcesssSlotStayThere) {
    machine_.policy("server", "match: {comm: server}\nallow_join: arrivals\nsettle: 0s\nbind: cpu\n");
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    daemon_.pass();
    EXPECT_EQ(ask(Wish::serve, 11, "", 2).outcome, JoinOutcome::no_slot);
    EXPECT_FALSE(ask(Wish::where, 11).serves);
}

} // namespace
} // namespace affinityd::app

// SPDX-License-Identifier: Apache-2.0
// Tasks that go where their packets arrive, through the manager; samples are made up.
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using test::Instance;
using test::Machine;
using test::policy_named;

constexpr auto two_lanes =
    "match: {comm: server}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\nsettle: 0s\n";

class TaskSteeringTest : public testing::Test {
  protected:
    explicit TaskSteeringTest(const std::string& more = "steer: tasks\n") {
        machine_.policy("server", two_lanes + more);
        for (int pid = 10; pid < 14; ++pid)
            machine_.process(pid, "server");
        EXPECT_TRUE(daemon_.manager().start());
        daemon_.pass();
        daemon_.pass();
    }
    void sampled(int pid, unsigned cpu, std::uint64_t samples = 10, int thread = 0) {
        daemon_.manager().steering().note(
            {.counts = {{.pid = pid, .arrival = cpu, .reader = 0, .thread = thread, .reads = samples}}});
        daemon_.finish();
    }
    [[nodiscard]] std::string mask(int pid) const { return machine_.allowed(pid, pid); }
    [[nodiscard]] nlohmann::json at_arrivals() {
        return policy_named(daemon_.status(), "server").value("at_arrivals", nlohmann::json::array());
    }
    /// A CPU of the lane that the process does not have.
    [[nodiscard]] unsigned elsewhere(int pid) const { return mask(pid) == "0-1" ? 2 : 0; }
    Machine machine_;
    Instance daemon_{machine_};
};

TEST_F(TaskSteeringTest, AProcessFollowsItsPacketsAtOnce) {
    const auto before = mask(10);
    ASSERT_TRUE(before == "0-1" || before == "2-3") << before;
    sampled(10, elsewhere(10));
    EXPECT_NE(mask(10), before);
    EXPECT_EQ(at_arrivals()[0]["tasks"], 1);
    EXPECT_EQ(at_arrivals()[0]["is_there"], true);
    const auto explained = daemon_.explain("10");
    EXPECT_EQ(explained["at_arrivals"][0]["why"], "its packets arrive on its lane");
    EXPECT_EQ(daemon_.explain("11")["at_arrivals"][0]["why"], "too few of its packets were seen");
    daemon_.pass();
    EXPECT_NE(mask(10), before) << "it has that slot now";
}

TEST_F(TaskSteeringTest, ItMovesOnceAMinute) {
    sampled(10, elsewhere(10));
    const auto there = mask(10);
    sampled(10, elsewhere(10), 60);
    EXPECT_EQ(mask(10), there);
    daemon_.pass();
    EXPECT_EQ(mask(10), there);
    EXPECT_EQ(at_arrivals()[0]["is_there"], false);
}

TEST_F(TaskSteeringTest, OldPacketsCountLessAndLess) {
    const auto here = 2 - elsewhere(10);
    sampled(10, here, 1000);
    EXPECT_TRUE(at_arrivals()[0]["is_there"]);
    const auto before = mask(10);
    for (int i = 0; i < 30; ++i)
        sampled(10, elsewhere(10), 10);
    EXPECT_NE(mask(10), before);
}

TEST_F(TaskSteeringTest, ALaterProcessOfTheSameNumberInheritsNothing) {
    sampled(10, elsewhere(10));
    machine_.end(10);
    daemon_.pass();
    EXPECT_TRUE(at_arrivals().empty());
    machine_.process(10, "server", "0-3", 1, 0, 300);
    daemon_.pass();
    EXPECT_EQ(daemon_.explain("10")["at_arrivals"][0]["why"], "too few of its packets were seen");
}

TEST_F(TaskSteeringTest, AReleasedProcessStaysWhereItIs) {
    ASSERT_TRUE(daemon_.release("10"));
    daemon_.finish();
    sampled(10, 0);
    sampled(10, 2);
    EXPECT_EQ(mask(10), "0-3");
    EXPECT_TRUE(at_arrivals().empty());
}

TEST_F(TaskSteeringTest, SamplesOfOthersAndOfNoKnownCpuMoveNobody) {
    const auto before = mask(10);
    sampled(4711, 0);
    daemon_.manager().steering().note({.counts = {{.pid = 10, .arrival = {}, .reader = 0, .reads = 10}}});
    sampled(10, 99);
    daemon_.finish();
    EXPECT_EQ(mask(10), before);
}

TEST_F(TaskSteeringTest, APolicyThatSteersNoMoreForgetsThem) {
    sampled(10, elsewhere(10));
    machine_.policy("server", std::string(two_lanes) + "steer: none\n");
    ASSERT_TRUE(daemon_.reload());
    daemon_.finish();
    daemon_.pass();
    EXPECT_TRUE(at_arrivals().empty());
    EXPECT_FALSE(daemon_.explain("10").contains("at_arrivals"));
}

class WithoutSteering : public TaskSteeringTest {
  protected:
    WithoutSteering() : TaskSteeringTest("steer: auto\n") {}
};

TEST_F(WithoutSteering, NobodyMoves) {
    const auto before = mask(10);
    sampled(10, elsewhere(10));
    EXPECT_EQ(mask(10), before);
    EXPECT_TRUE(at_arrivals().empty());
}

class OneThreadForEachConnection : public TaskSteeringTest {
  protected:
    OneThreadForEachConnection() : TaskSteeringTest("steer: tasks\n") {
        for (int tid = 20; tid < 24; ++tid)
            machine_.thread(10, tid, "server");
        daemon_.pass();
    }
};

TEST_F(OneThreadForEachConnection, TheThreadGoesAlone) {
    const auto before = machine_.allowed(10, 21), others = machine_.allowed(10, 22), main = mask(10);
    const unsigned cpu = before == "0-1" ? 2 : 0;
    sampled(10, cpu, 10, 21);
    EXPECT_NE(machine_.allowed(10, 21), before);
    EXPECT_EQ(machine_.allowed(10, 22), others);
    EXPECT_EQ(mask(10), main);
}

} // namespace
} // namespace affinityd::app

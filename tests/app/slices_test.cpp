// SPDX-License-Identifier: Apache-2.0
// Nobody works for longer than a slice, and nobody is kept from its end: passes, events, many threads.
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using std::chrono::milliseconds;
using test::Instance;
using test::state_of;

class SlicesTest : public testing::Test {
  protected:
    SlicesTest() { machine_.policy("server", "match: {comm: server}\ncpus: \"2\"\nbind: set\n"); }
    void process_of(int pid, int threads) const {
        machine_.process(pid, "server");
        for (int i = 1; i < threads; ++i)
            machine_.thread(pid, pid * 10'000 + i, "worker", "0-3", 1, 0, 100 + i);
    }
    test::Machine machine_;
};

TEST_F(SlicesTest, APassEndsAlthoughEventsAreLostBeforeEachSlice) {
    machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0\"\n");
    for (int pid = 100; pid < 150; ++pid)
        machine_.process(pid, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    unsigned slices = 0;
    for (; slices < 2000 && machine_.irq(30) == "0-3"; ++slices) {
        instance.manager().events_lost();
        instance.manager().begin_pass(true); // and everybody else asks for passes, too
        instance.short_step();
    }
    EXPECT_EQ(machine_.irq(30), "0") << "queues come after all tasks in the first pass";
    EXPECT_EQ(machine_.allowed(149, 149), "2");
    unsigned more = 0;
    while (!instance.short_step() && ++more < 2000) {
    }
    EXPECT_LT(more, 2000U) << "and there is an end when it is quiet: the loop says READY";
    EXPECT_LE(instance.status()["reconciles"], 2) << "passes that were asked for together are one";
}

TEST_F(SlicesTest, APassEndsAlthoughAProcessOfManyThreadsIsRenamedBeforeEachSlice) {
    process_of(10, 200);
    for (int pid = 100; pid < 120; ++pid)
        machine_.process(pid, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.manager().begin_pass(false);
    unsigned slices = 0;
    for (; slices < 6000 && instance.manager().work().passing(); ++slices) {
        instance.tasks().process_changed(10);
        instance.short_step();
    }
    EXPECT_LT(slices, 6000U);
    EXPECT_EQ(machine_.allowed(119, 119), "2");
}

TEST_F(SlicesTest, WhoHasNoTimeLeftIsNotAskedAgainAndTakesUpNoOther) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    for (const int pid : {10, 20}) {
        process_of(pid, 2000);
        instance.tasks().process_changed(pid);
    }
    unsigned asked = 0;
    EXPECT_FALSE(instance.tasks().step([&] { return ++asked == 1; }));
    EXPECT_EQ(asked, 1U) << "time may seem to be left a moment later";
}

TEST_F(SlicesTest, MoreLargeProcessesThanMayBeUnderWayAreAllPlaced) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    constexpr int count = 24, threads = 300;
    for (int pid = 100; pid < 100 + count; ++pid) {
        process_of(pid, threads);
        instance.tasks().process_changed(pid);
    }
    unsigned steps = 0;
    while (!instance.tasks().step([] { return true; }) && steps < 100'000)
        ++steps;
    EXPECT_LT(steps, 100'000U);
    for (int pid = 100; pid < 100 + count; ++pid)
        EXPECT_EQ(machine_.allowed(pid, pid * 10'000 + threads - 1), "2") << pid;
}

TEST_F(SlicesTest, AnEventOfManyThreadsPlacesFewAtOnceAndOtherEventsAreNext) {
    process_of(10, 2000);
    machine_.process(20, "server");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.enforcer().takes = milliseconds(2); // more than an event may take
    instance.tasks().process_changed(10);
    EXPECT_LE(instance.enforcer().applied, 1U);
    const auto before = instance.enforcer().applied;
    instance.tasks().process_changed(20);
    EXPECT_EQ(machine_.allowed(20, 20), "2") << "at once";
    EXPECT_EQ(instance.enforcer().applied, before + 1);
    machine_.thread(10, 99'999, "late", "0-3", 1, 0, 5000);
    instance.tasks().thread_changed(10, 99'999);
    EXPECT_EQ(machine_.allowed(10, 99'999), "2");
    instance.enforcer().takes = milliseconds(0);
    unsigned slices = 0;
    for (auto placed = instance.enforcer().applied; !instance.short_step() && slices < 100'000; ++slices) {
        EXPECT_LE(instance.enforcer().applied, placed + 1) << "one in a slice without time";
        placed = instance.enforcer().applied;
    }
    EXPECT_GE(slices, 1998U);
    EXPECT_LT(slices, 100'000U);
    EXPECT_EQ(instance.journal().size(), 2002U);
    EXPECT_EQ(machine_.allowed(10, 101'999), "2");
}

TEST_F(SlicesTest, ThreadsThatEndedUnnoticedAreClearedAwayInSlices) {
    process_of(10, 500);
    process_of(11, 500);
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    ASSERT_EQ(instance.journal().size(), 1000U);
    machine_.end(10); // one process, and all threads but the first of the other
    for (int i = 1; i < 500; ++i)
        machine_.end_thread(11, 110'000 + i);
    instance.manager().begin_pass(false);
    unsigned slices = 0;
    for (auto before = instance.journal().size(); !instance.short_step() && slices < 10'000; ++slices) {
        EXPECT_GE(instance.journal().size() + 2, before) << "a slice without time clears a thread or two";
        before = instance.journal().size();
    }
    EXPECT_EQ(instance.journal().size(), 1U);
    EXPECT_EQ(state_of(instance.status(), 11, 11), "in place");
}

TEST_F(SlicesTest, AStormOfRefusalsOfDifferentTasksDoesNotFillTheLog) {
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    for (int pid = 1000; pid < 1500; ++pid) {
        machine_.process(pid, "server");
        instance.enforcer().refuse[planner::TaskMask{{pid, 100}, pid, "server"}] =
            enforcer::Outcome::not_permitted;
        instance.tasks().process_changed(pid);
    }
    instance.pass();
    EXPECT_LE(instance.log().times("could not be moved"), 10U);
    EXPECT_EQ(instance.log().log().count("changes not permitted"), 500U) << "each was counted once";
    EXPECT_EQ(instance.status()["refused"].size(), 500U);
    for (int pid = 1000; pid < 1500; ++pid)
        machine_.end(pid);
    for (int pass = 0; pass < 10; ++pass)
        instance.pass();
    EXPECT_EQ(instance.status()["refused"].size(), 0U) << "those of tasks that are gone are dropped";
}

TEST_F(SlicesTest, StatusLeavesAProcessBetweenItsThreads) {
    constexpr int threads = 50;
    machine_.process(10, "server");
    for (int tid = 11; tid < 10 + threads; ++tid)
        machine_.thread(10, tid, "worker");
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.pass();
    std::optional<Result<OwnedText>> answer;
    instance.manager().status([&](Result<OwnedText> text) { answer = std::move(text); });
    int slices = 0;
    while (!answer && slices < 10 * threads) {
        instance.short_step();
        ++slices;
    }
    ASSERT_TRUE(answer);
    EXPECT_GE(slices, threads) << "one thread a slice";
    const auto status = nlohmann::json::parse((*answer)->full());
    ASSERT_EQ(status["processes"].size(), 1U);
    EXPECT_EQ(status["processes"][0]["threads"].size(), static_cast<std::size_t>(threads));
    EXPECT_EQ(nlohmann::json::parse((*answer)->full()), instance.status());
}

} // namespace
} // namespace affinityd::app

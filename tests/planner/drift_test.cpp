// SPDX-License-Identifier: Apache-2.0
// Another program changes a mask after the daemon has set it.
#include "world.hpp"

namespace affinityd::planner {
namespace {

using test::plain;
using test::thread;
using test::World;
using State = ThreadPlan::State;

const CpuSet everywhere = CpuSet::range(0, 7);

std::string policy(const std::string& keys) { return "match: {comm: a}\nbind: set\n" + keys; }

/// A task that the policy has placed, and that another program has moved to CPU 5 since then.
struct Moved {
    World world;
    inventory::Thread task = thread(1, "a");
    explicit Moved(const std::string& keys) : world({policy(keys)}, plain()) {
        world.settle(task);
        task.allowed = CpuSet{5};
    }
};

TEST(Foreign, AMaskThatAnotherProgramSetStaysWhenNoPolicyWantsTheTask) {
    Moved moved("cpus: \"1\"\n");
    const auto plan = moved.world.plan(moved.task, std::nullopt);
    EXPECT_EQ(plan.state, State::foreign);
    EXPECT_FALSE(plan.action) << "would set " << plan.action->to.to_string();
    EXPECT_TRUE(plan.forget);
    moved.world.apply(moved.task, plan);
    EXPECT_EQ(moved.world.plan(moved.task, std::nullopt).state, State::unwanted) << "it is told once";
}

TEST(Foreign, AMaskThatAnotherProgramSetStaysWhenItsPolicyLeavesTheTaskAlone) {
    for (const std::string keys : {"affinity: none\n", "affinity: irq\nnics: auto\n",
                                   "threads:\n  - {name: \"*\", leave: true}\n", "cpus: \"node:7\"\n"}) {
        Moved moved("cpus: \"1\"\n");
        moved.world.reload({policy(keys)});
        const auto plan = moved.world.plan(moved.task);
        EXPECT_EQ(plan.state, State::foreign) << keys;
        EXPECT_FALSE(plan.action) << keys;
        EXPECT_TRUE(plan.forget) << keys;
    }
}

TEST(Foreign, AMaskThatIsStillOursIsRestoredWhenItsPolicyLeavesTheTaskAlone) {
    World world({policy("cpus: \"1\"\n")}, plain());
    auto task = thread(1, "a", CpuSet{2, 3});
    world.settle(task);
    world.reload({policy("affinity: none\n")});
    const auto plan = world.plan(task);
    ASSERT_TRUE(plan.action);
    EXPECT_TRUE(plan.action->restore);
    EXPECT_EQ(plan.action->to, Setting(CpuSet{2, 3}));
    EXPECT_EQ(plan.action->reason.text, "policy p0 leaves it alone: its own mask back");
}

TEST(Foreign, AMaskThatAnotherProgramSetAmongExclusiveCpusIsCutNotReplaced) {
    World world({"match: {comm: a}\ncpus: \"6-7\"\nbind: set\nexclusive: true\n"}, plain());
    auto task = thread(1, "c");
    EXPECT_EQ(world.settle(task, std::nullopt), "0-5");
    task.allowed = CpuSet{2, 6};
    world.settle(task, std::nullopt);
    EXPECT_EQ(world.settle(task, std::nullopt), "2") << "not 0-5, which is what we last gave it";
    world.reload({"match: {comm: a}\nbind: set\n"});
    EXPECT_EQ(world.settle(task, std::nullopt), "2,6") << "and that is what it goes back to";
}

TEST(Foreign, AMaskThatAnotherProgramSetOffExclusiveCpusStays) {
    World world({"match: {comm: a}\ncpus: \"6-7\"\nbind: set\nexclusive: true\n"}, plain());
    auto task = thread(1, "c");
    world.settle(task, std::nullopt);
    task.allowed = CpuSet{2};
    const auto plan = world.plan(task, std::nullopt);
    EXPECT_EQ(plan.state, State::foreign);
    EXPECT_TRUE(plan.forget);
}

TEST(Foreign, AMaskThatANewCpusetCutsIsStillOurs) {
    World world({policy("cpus: \"0-3\"\n")}, plain());
    for (const CpuSet& cpuset : {CpuSet::range(2, 5), CpuSet::range(4, 7)}) {
        auto task = thread(1, "a");
        world.settle(task);
        // The kernel cuts the mask to the cpuset, or takes all of the cpuset if no CPU is left.
        task.allowed = task.allowed.intersects(cpuset) ? task.allowed & cpuset : cpuset;
        const auto plan =
            plan_thread(world.planning(), {.id = task.id, .policy = std::nullopt, .cpuset = &cpuset}, {task});
        ASSERT_TRUE(plan.action) << cpuset.to_list();
        EXPECT_TRUE(plan.action->restore);
        EXPECT_EQ(plan.action->to, Setting(everywhere));
        world.book.forget(task.id);
    }
}

TEST(Foreign, AMaskThatTheKernelResetIsStillOurs) {
    World world({policy("cpus: \"1\"\n")}, plain());
    auto task = thread(1, "a", CpuSet{2, 3});
    world.settle(task);
    task.allowed = everywhere;
    const auto plan = plan_thread(world.planning(), {.id = task.id, .policy = std::nullopt},
                                  {.thread = task, .may_be_reset = true});
    ASSERT_TRUE(plan.action) << "its original was narrower";
    EXPECT_EQ(plan.action->to, Setting(CpuSet{2, 3}));
}

TEST(Drift, EnforceMovesATaskBack) {
    Moved moved("cpus: \"1\"\ndrift: enforce\n");
    EXPECT_EQ(moved.world.settle(moved.task), "1");
}

TEST(Drift, EnforceIsTheDefault) {
    Moved moved("cpus: \"1\"\n");
    EXPECT_EQ(moved.world.plan(moved.task).state, State::changes);
}

TEST(Drift, OnceAndYieldLeaveATaskThatAnotherProgramMoved) {
    for (const std::string drift : {"once", "yield"}) {
        Moved moved("cpus: \"1\"\ndrift: " + drift + "\n");
        const auto plan = moved.world.plan(moved.task);
        EXPECT_EQ(plan.state, State::yielded) << drift;
        EXPECT_FALSE(plan.action) << drift;
        EXPECT_FALSE(plan.forget) << "what we did to it must stay known: " << drift;
        ASSERT_TRUE(plan.target) << drift;
        EXPECT_EQ(plan.target->mask, CpuSet{1}) << drift;
    }
}

TEST(Drift, OnceAndYieldLeaveItAlsoWhenThePolicysCpusChange) {
    for (const std::string drift : {"once", "yield"}) {
        Moved moved("cpus: \"1\"\ndrift: " + drift + "\n");
        moved.world.reload({policy("cpus: \"2\"\ndrift: " + drift + "\n")});
        EXPECT_EQ(moved.world.plan(moved.task).state, State::yielded) << drift;
    }
}

TEST(Drift, OnceAndYieldMoveATaskThatOnlyThePolicyMoves) {
    for (const std::string drift : {"once", "yield"}) {
        World world({policy("cpus: \"1\"\ndrift: " + drift + "\n")}, plain());
        auto task = thread(1, "a");
        EXPECT_EQ(world.settle(task), "1") << drift;
        world.reload({policy("cpus: \"2\"\ndrift: " + drift + "\n")});
        EXPECT_EQ(world.settle(task), "2") << drift;
    }
}

TEST(Drift, AfterAResetToAllCpusYieldPlacesATaskAgainAndOnceDoesNot) {
    for (const auto& [drift, state] :
         {std::pair{"yield", State::changes}, std::pair{"once", State::yielded}}) {
        Moved moved(std::string("cpus: \"1\"\ndrift: ") + drift + "\n");
        EXPECT_EQ(moved.world.plan(moved.task).state, State::yielded) << drift;
        moved.task.allowed = everywhere; // the program gives up its own mask
        EXPECT_EQ(moved.world.plan(moved.task).state, state) << drift;
    }
}

TEST(Drift, YieldTakesTheWholeOfACpusetForAllCpus) {
    const CpuSet cpuset = CpuSet::range(0, 3);
    World world({policy("cpus: \"1\"\ndrift: yield\n")}, plain());
    auto task = thread(1, "a", cpuset);
    const ProcessView process{.id = task.id, .policy = 0, .cpuset = &cpuset};
    world.apply(task, plan_thread(world.planning(), process, {task}));
    EXPECT_EQ(task.allowed, CpuSet{1});
    task.allowed = CpuSet{2};
    EXPECT_EQ(plan_thread(world.planning(), process, {task}).state, State::yielded);
    task.allowed = cpuset;
    EXPECT_EQ(plan_thread(world.planning(), process, {task}).state, State::changes);
}

TEST(Drift, AMaskThatTheKernelResetIsPutRightUnderEachKindOfDrift) {
    for (const std::string drift : {"enforce", "once", "yield"}) {
        World world({policy("cpus: \"1\"\ndrift: " + drift + "\n")}, plain());
        auto task = thread(1, "a");
        world.settle(task);
        task.allowed = everywhere;
        const ProcessView process{.id = task.id, .policy = 0};
        EXPECT_EQ(plan_thread(world.planning(), process, {.thread = task, .may_be_reset = true}).state,
                  State::changes)
            << drift;
        task.allowed = CpuSet{5};
        EXPECT_EQ(plan_thread(world.planning(), process, {.thread = task, .may_be_reset = true}).state,
                  drift == "enforce" ? State::changes : State::yielded)
            << "no kernel resets a mask to some CPUs: " << drift;
    }
}

TEST(Drift, AProcessIsToldWhichOfItsThreadsTheKernelMayHaveReset) {
    World world({policy("cpus: \"1\"\ndrift: once\n")}, plain());
    std::vector<inventory::Thread> threads{thread(1, "a"), thread(2, "a")};
    for (auto& task : threads) {
        world.settle(task);
        task.allowed = everywhere;
    }
    const std::function<bool(const TaskId&)> second_only = [](const TaskId& id) { return id.tid == 2; };
    std::vector<State> states;
    plan_process(world.planning(), {.id = threads.front().id, .policy = 0, .may_be_reset = &second_only},
                 threads,
                 [&](const inventory::Thread&, const ThreadPlan& plan) { states.push_back(plan.state); });
    EXPECT_EQ(states, (std::vector{State::yielded, State::changes}));
}

} // namespace
} // namespace affinityd::planner

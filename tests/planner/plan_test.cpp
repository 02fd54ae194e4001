// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

namespace affinityd::planner {
namespace {

using test::plain;
using test::thread;
using test::World;
using State = ThreadPlan::State;

TEST(Plan, AnUnchangedTaskNeedsNoSecondChange) {
    World world({"match: {comm: a}\ncpus: \"2-3\"\nbind: set\n"}, plain());
    auto task = thread(1, "a");
    EXPECT_EQ(world.settle(task), "2-3");
    const auto again = world.plan(task);
    EXPECT_EQ(again.state, State::in_place);
    EXPECT_FALSE(again.action);
}

TEST(Plan, ThreadRulesApplyByNameAndTheOriginalReturnsWhenThePolicyGoes) {
    World world({"match: {comm: a}\ncpus: \"0-3\"\nbind: set\nthreads:\n  - {name: \"io*\", cpus: \"7\", "
                 "bind: cpu}\n  - {name: free, leave: true}\n"},
                plain());
    auto io = thread(2, "io-1", CpuSet{0, 1});
    auto free = thread(3, "free");
    EXPECT_EQ(world.settle(io), "7");
    EXPECT_EQ(world.plan(free).state, State::left_alone);
    const auto gone = world.plan(io, std::nullopt);
    ASSERT_TRUE(gone.action);
    EXPECT_TRUE(gone.action->restore);
    EXPECT_EQ(gone.action->to, Setting(CpuSet{0, 1}));
    EXPECT_FALSE(gone.forget) << "the record goes when the original is restored, not before";
}

TEST(Plan, AMaskThatACpusetNarrowedIsNotAskedForAgain) {
    World world({"match: {comm: a}\ncpus: \"0-3\"\nbind: set\n"}, plain());
    auto task = thread(1, "a");
    const auto first = world.plan(task);
    ASSERT_TRUE(first.action);
    world.book.apply(*first.action, CpuSet{2, 3});
    task.allowed = CpuSet{2, 3};
    EXPECT_EQ(world.plan(task).state, State::in_place);
    task.allowed = CpuSet::range(0, 7);
    EXPECT_TRUE(world.plan(task).action) << "but a mask that changed since then is";
}

TEST(Plan, PriorKeepLeavesTasksThatHadAMaskOfTheirOwn) {
    World world({"match: {comm: a}\ncpus: \"1\"\nbind: set\nprior: keep\n"}, plain());
    EXPECT_EQ(world.plan(thread(1, "a", CpuSet{3})).state, State::left_alone);
    EXPECT_EQ(world.plan(thread(2, "a")).state, State::changes);
}

TEST(Plan, ANewProcessMayUseTheWholePolicyUntilItHasSettled) {
    World world({"match: {comm: a}\ncpus: \"2-5\"\nspread: cpu\nbind: cpu\nthreads:\n"
                 "  - {name: \"io*\", cpus: \"7\", bind: cpu}\n  - {name: free, leave: true}\n"},
                plain());
    ProcessView view{.id = {1, 1}, .policy = 0};
    view.is_settling = true;
    const auto plan = [&](const inventory::Thread& task) {
        return plan_thread(world.planning(), view, {task});
    };
    auto main = thread(1, "a"), io = thread(2, "io-1");
    const auto first = plan(main);
    ASSERT_TRUE(first.action && first.target);
    EXPECT_EQ(first.action->to, Setting(CpuSet::range(2, 5)));
    EXPECT_EQ(first.action->reason.text,
              "policy p0: it is new, and may use all of its CPUs, 2-5, until it has settled");
    EXPECT_TRUE(world.assignments.seats().empty()) << "it has no slot yet";
    world.apply(main, first);
    EXPECT_FALSE(plan(main).action);
    EXPECT_EQ(plan(io).action->to, Setting(CpuSet::range(2, 5)));
    EXPECT_EQ(plan(thread(3, "free")).state, State::left_alone);
    const CpuSet cpuset{4, 5, 6};
    view.cpuset = &cpuset;
    EXPECT_EQ(plan(io).action->to, Setting(CpuSet{4, 5}));
    const CpuSet elsewhere{6};
    view.cpuset = &elsewhere;
    EXPECT_EQ(plan(thread(4, "a")).state, State::outside);
    view.cpuset = nullptr;
    view.is_settling = false;
    EXPECT_EQ(plan(main).action->to, Setting(CpuSet{2}));
    EXPECT_EQ(plan(io).action->to, Setting(CpuSet{7}));
}

TEST(Plan, ANewProcessCountsNoCpusThatAreNotUsed) {
    World world({"match: {comm: a}\ncpus: \"2-7\"\nsmt: avoid\nspread: cpu\nbind: cpu\n"}, plain());
    ProcessView view{.id = {1, 1}, .policy = 0};
    view.is_settling = true;
    EXPECT_EQ(plan_thread(world.planning(), view, {thread(1, "a")}).action->to, Setting(CpuSet{2, 4, 6}));
}

TEST(Plan, ProtectedKernelThreadsAreNeverTouched) {
    World world({"match: {kthread: true}\ncpus: \"1\"\nbind: set\n"}, plain());
    auto task = thread(1, "ksoftirqd/0", CpuSet{0});
    task.flags = inventory::pf_kthread | inventory::pf_no_setaffinity;
    EXPECT_EQ(world.plan(task).state, State::immovable);
}

TEST(Plan, ExclusiveCpusAreClearedOfAllOtherTasks) {
    World world(
        {"match: {comm: a}\ncpus: \"6-7\"\nbind: set\nexclusive: true\n", "match: {comm: b}\nbind: set\n"},
        plain());
    auto owner = thread(1, "a");
    auto other = thread(2, "b");
    auto unwanted = thread(3, "c");
    EXPECT_EQ(world.settle(owner, 0), "6-7");
    EXPECT_EQ(world.settle(other, 1), "0-5");
    EXPECT_EQ(world.settle(unwanted, std::nullopt), "0-5");
    const auto plan = world.plan(unwanted, std::nullopt);
    EXPECT_EQ(plan.state, State::kept_off);
    ASSERT_TRUE(plan.kept_off);
    EXPECT_EQ(Reason(*plan.kept_off).text, "kept off CPUs 6-7: exclusive of p0");
    auto kernel = thread(4, "kworker");
    kernel.flags = inventory::pf_kthread;
    EXPECT_FALSE(world.plan(kernel, std::nullopt).action);
    auto stuck = thread(5, "d", CpuSet{7});
    EXPECT_FALSE(world.plan(stuck, std::nullopt).action) << "a task needs some CPU";
}

TEST(Plan, TasksOfAPolicyThatAClaimLeavesNoCpuAreKeptOffToo) {
    World world({"match: {comm: a}\ncpus: \"6-7\"\nbind: set\nexclusive: true\n",
                 "match: {comm: b}\ncpus: \"7\"\nbind: set\n"},
                plain());
    ASSERT_EQ(world.placements.problems.size(), 1U);
    EXPECT_EQ(world.placements.problems[0].policy, "p1");
    EXPECT_EQ(world.placements.problems[0].message,
              "no CPU is left, as CPU 7 is reserved for p0 (exclusive)");
    auto task = thread(2, "b");
    EXPECT_EQ(world.settle(task, 1), "0-5");
    EXPECT_EQ(world.plan(task, 1).state, State::kept_off);
    world.placements = compile(world.set, world.machine, {}, nullptr, {"p0"});
    EXPECT_EQ(world.settle(task, 1), "7") << "the claim was released";
    EXPECT_TRUE(world.placements.problems.empty());
}

TEST(Plan, OfflineCpusAreLeftOut) {
    World world({"match: {comm: a}\ncpus: \"2-5\"\nbind: set\n"}, plain(CpuSet{3}));
    auto task = thread(1, "a", CpuSet::range(0, 7) - CpuSet{3});
    EXPECT_EQ(world.settle(task), "2,4-5");
}

TEST(Plan, APolicyWithoutCpusHereIsAProblemAndTouchesNoTask) {
    World world({"match: {comm: a}\ncpus: \"node:7\"\n"}, plain());
    ASSERT_EQ(world.placements.problems.size(), 1U);
    EXPECT_NE(world.placements.problems.front().message.find("node 7"), std::string::npos);
    EXPECT_EQ(world.plan(thread(1, "a")).state, State::left_alone);
}

TEST(Plan, IsolatedCpusAreGivenOneToEachTask) {
    auto machine = plain();
    machine.topology.isolated = CpuSet{4, 5, 6, 7};
    World world(
        {"match: {comm: a}\ncpus: isolated\nbind: set\nspread: cpu\n", "match: {comm: b}\nbind: set\n"},
        machine);
    auto first = thread(1, "a");
    auto second = thread(2, "a");
    auto other = thread(3, "b");
    EXPECT_EQ(world.settle(first), "4");
    EXPECT_EQ(world.settle(second), "6");
    EXPECT_EQ(world.settle(other, 1), "0-3") << "isolated CPUs are only for policies that name them";
}

std::vector<std::string> masks_on_mixed_cpus(const std::string& placement) {
    auto machine = plain();
    machine.topology.isolated = CpuSet{3, 4, 5, 6, 7};
    World world({"match: {comm: a}\ncpus: \"1-7\"\n" + placement}, machine);
    EXPECT_EQ(world.placements.problems.size(), 1U) << placement;
    for (const auto& problem : world.placements.problems)
        EXPECT_EQ(problem.subject, "3-7") << placement;
    std::vector<std::string> masks;
    for (int tid = 1; tid <= 6; ++tid) {
        auto task = thread(tid, "a");
        masks.push_back(world.settle(task));
    }
    std::ranges::sort(masks);
    return masks;
}

TEST(Plan, APolicyWithIsolatedAndOtherCpusGivesATaskOneOfThoseOrSeveralOfThese) {
    using Masks = std::vector<std::string>;
    EXPECT_EQ(masks_on_mixed_cpus("bind: set\n"), (Masks{"1-2", "3", "4", "5", "6", "7"}));
    EXPECT_EQ(masks_on_mixed_cpus("bind: llc\n"), (Masks{"1-2", "3", "4", "5", "6", "7"}));
    EXPECT_EQ(masks_on_mixed_cpus("bind: node\nspread: node\n"), (Masks{"1-2", "3", "4", "5", "6", "7"}));
    // CPUs 2 and 3 share a core, and only one of them is isolated.
    EXPECT_EQ(masks_on_mixed_cpus("bind: core\nspread: core\n"), (Masks{"1", "2", "3", "4", "5", "6"}));
    EXPECT_EQ(masks_on_mixed_cpus("bind: set\nspread: cpu\n"), (Masks{"1-2", "1-2", "3", "4", "5", "6"}));
}

TEST(Plan, IsolatedCpusAreNoProblemWhereAMaskHasOneCpuAnyway) {
    auto machine = test::without_smt(8);
    machine.topology.isolated = CpuSet{4, 5, 6, 7};
    for (const std::string bind : {"cpu", "core"}) {
        const World world({"match: {comm: a}\ncpus: \"2-7\"\nbind: " + bind + "\n"}, machine);
        EXPECT_TRUE(world.placements.problems.empty()) << bind;
    }
}

TEST(Plan, AThreadRuleAndAGroupGiveOneIsolatedCpuToo) {
    auto machine = plain();
    machine.topology.isolated = CpuSet{3, 4, 5, 6, 7};
    World world({"match: {comm: a}\ncpus: \"0-2\"\nthreads:\n  - {name: io, cpus: \"2-7\", bind: set}\n",
                 "match: {comm: b}\ncpus: \"2-7\"\ntogether: node\nbind: set\n"},
                machine);
    const auto& isolated = machine.topology.isolated;
    for (std::size_t policy = 0; policy < 2; ++policy)
        for (int tid = 1; tid <= 8; ++tid) {
            auto task = thread(static_cast<int>(policy) * 100 + tid, policy == 0 ? "io" : "b");
            world.settle(task, policy);
            EXPECT_TRUE(task.allowed.count() == 1 || !task.allowed.intersects(isolated))
                << policy << ": " << task.allowed.to_list();
        }
}

TEST(Plan, ReasonsNameThePolicyTheRuleAndTheSlot) {
    World world({"match: {comm: a}\ncpus: \"0-3\"\nbind: llc\nthreads:\n  - {name: io, cpus: \"7\", bind: "
                 "cpu}\n"},
                plain());
    const auto reason = [](const ThreadPlan& plan) { return plan.action.value().reason.text; };
    auto main = thread(1, "a", CpuSet{5});
    auto io = thread(2, "io");
    EXPECT_EQ(reason(world.plan(main)), "policy p0: slot 0-3, bound to what cpus has of its cache group");
    EXPECT_EQ(reason(world.plan(io)), "policy p0, thread rule 1: slot 7, bound to its CPU");
    world.settle(io);
    EXPECT_EQ(reason(world.plan(io, std::nullopt)), "no policy wants it any more: its own mask back");
}

TEST(Plan, ProcessesKeptTogetherGetAGroupThatTheirCpusetHas) {
    World world({"match: {comm: a}\ntogether: llc\nspread: core\nbind: core\n"}, plain());
    const CpuSet cpuset = CpuSet::range(4, 7);
    for (int pid = 1; pid <= 3; ++pid) {
        const auto task = thread(pid, "a");
        const auto plan =
            plan_thread(world.planning(), {.id = task.id, .policy = 0, .cpuset = &cpuset}, {task});
        ASSERT_TRUE(plan.target) << "process " << pid << ": the group of CPUs 4-7 is within the cpuset";
        EXPECT_TRUE(cpuset.contains(plan.target->mask)) << plan.target->mask.to_list();
    }
    const CpuSet elsewhere{9};
    const auto task = thread(4, "a");
    EXPECT_EQ(plan_thread(world.planning(), {.id = task.id, .policy = 0, .cpuset = &elsewhere}, {task}).state,
              State::outside);
}

TEST(Plan, ThreadsWithARuleOfTheirOwnStayInTheGroupOfTheirProcess) {
    World world({"match: {comm: a}\ntogether: llc\nthreads: [{name: io, spread: core, bind: core}]\n"},
                plain());
    auto main = thread(1, "a");
    auto io = thread(2, "io");
    const ThreadPlan plan = plan_thread(world.planning(), {.id = main.id, .policy = 0}, {main});
    ASSERT_TRUE(plan.target);
    const ThreadPlan of_rule = plan_thread(world.planning(), {.id = main.id, .policy = 0}, {io});
    ASSERT_TRUE(of_rule.target);
    EXPECT_TRUE(plan.target->mask.contains(of_rule.target->mask)) << of_rule.target->mask.to_list();
    EXPECT_LT(of_rule.target->mask.count(), plan.target->mask.count());
}

TEST(Plan, AServerWhoseCpusetHasNoLaneIsPlacedElsewhereInIt) {
    auto machine = plain();
    test::add_nic(machine, "eth0", 0, 2, 30);
    World world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: core\n"}, machine,
                {{"p0", {{{"eth0"}, 2}}}});
    CpuSet cpuset = world.placements.policies[0].usable;
    for (const auto& seat : test::seats(world.placements.policies[0].nics[0]))
        cpuset = cpuset - seat;
    ASSERT_FALSE(cpuset.empty());
    const auto task = thread(1, "a");
    const auto plan = plan_thread(world.planning(), {.id = task.id, .policy = 0, .cpuset = &cpuset}, {task});
    ASSERT_TRUE(plan.target);
    EXPECT_TRUE(cpuset.contains(plan.target->mask)) << plan.target->mask.to_list();
}

TEST(Plan, AProcessIsPlannedAsItsThreadsOneByOneAre) {
    const std::vector<std::string> policies{
        "match: {comm: a}\nspread: core\nbind: core\nthreads:\n  - {index: 2, cpus: \"7\", bind: cpu}\n"
        "  - {name: free, leave: true}\n"};
    World whole(policies, plain());
    World single(policies, plain());
    std::vector<inventory::Thread> threads;
    for (int tid = 1; tid <= 6; ++tid)
        threads.push_back(thread(tid, tid == 5 ? "free" : "a"));
    const ProcessView process{.id = threads.front().id, .policy = 0};
    std::vector<ThreadPlan> plans;
    plan_process(whole.planning(), process, threads,
                 [&](const inventory::Thread& seen, const ThreadPlan& plan) {
                     EXPECT_EQ(seen.id, threads[plans.size()].id) << "in the order of the threads";
                     plans.push_back(plan);
                 });
    ASSERT_EQ(plans.size(), threads.size());
    for (std::size_t i = 0; i < threads.size(); ++i) {
        const auto expected = plan_thread(single.planning(), process, {threads[i], static_cast<unsigned>(i)});
        EXPECT_EQ(plans[i].state, expected.state) << i;
        ASSERT_EQ(plans[i].target.has_value(), expected.target.has_value()) << i;
        if (!expected.target) continue;
        EXPECT_EQ(plans[i].target->mask, expected.target->mask) << i;
        EXPECT_EQ(plans[i].target->distribution, expected.target->distribution) << i;
    }
    EXPECT_EQ(plans[2].target->mask, CpuSet{7}) << "the thread rule by index";
    EXPECT_EQ(plans[4].state, State::left_alone);
}

TEST(Plan, TheSameInputGivesTheSamePlan) {
    const auto run = [] {
        auto machine = plain();
        test::add_nic(machine, "eth0", 0, 3, 30);
        World world({"match: {comm: a}\naffinity: full\nnics: [eth0]\nspread: core\nbind: cpu\n"}, machine,
                    {{"p0", {{{"eth0"}, 3}}}});
        std::string text;
        for (int i = 1; i < 20; ++i) {
            auto task = thread(i, "a");
            text += world.settle(task) + ";";
        }
        for (const auto& target : world.placements.queues)
            if (const auto action = plan_queue(world.planning(), target, CpuSet::range(0, 7)))
                text += to_string(action->subject) + "=" + action->to.to_string() + action->reason.text;
        return text;
    };
    EXPECT_EQ(run(), run());
}

} // namespace
} // namespace affinityd::planner

// SPDX-License-Identifier: Apache-2.0
// A re-deal's moves depend on the tasks and their slots only, and it is made of many short steps.
#include "planner/redeal.hpp"
#include "world.hpp"

#include <algorithm>
#include <set>

#include <time.h>

namespace affinityd::planner {
namespace {

using test::World;

std::vector<std::string> policies_saying(int count, const std::string& text) {
    std::vector<std::string> texts;
    for (int i = 0; i < count; ++i)
        texts.push_back("match: {comm: a" + std::to_string(i) + "}\n" + text);
    return texts;
}

/// A task in a slot that has this CPU only.
void seat(Assignments& assignments, int policy, const TaskId& task, unsigned cpu) {
    const DistributionId id{"p" + std::to_string(policy), 0, ""};
    const std::vector<Slot> only{{CpuSet{cpu}, CpuSet{cpu}}};
    (void)assignments.assign({.distribution = id, .slots = only, .task = task, .present = {}});
}

/// 40 tasks of as many policies on CPU 0; before them there were `crowd` others, and the policies were asked
/// for in another order.
std::string moves_after(int crowd) {
    World world(policies_saying(40, "spread: cpu\nbind: cpu\n"), test::plain());
    world.assignments.use(world.placements.load);
    for (int i = 0; i < crowd; ++i)
        seat(world.assignments, 100 + i % 7, {100'000 + i, 7}, static_cast<unsigned>(i % 8));
    for (int i = 0; i < crowd; ++i)
        world.assignments.leave({100'000 + i, 7});
    for (int i = 0; i < 40; ++i) {
        const int policy = crowd % 2 == 0 ? i : 39 - i;
        seat(world.assignments, policy, {1 + (policy * 7919 + 13) % 32768, 1234}, 0);
    }
    Redeal redeal(world.placements, world.assignments);
    while (!redeal.step([] { return true; })) {
    }
    std::string text;
    for (const auto& move : redeal.moves())
        text += std::to_string(move.task.tid) + ">" + move.to.cpus.to_list() + " ";
    return text;
}

TEST(Redeal, TheSameTasksInTheSameSlotsGiveTheSameMovesWhateverWasBefore) {
    const auto moves = moves_after(0);
    EXPECT_FALSE(moves.empty());
    for (const int crowd : {1, 300, 301, 5000})
        EXPECT_EQ(moves_after(crowd), moves) << crowd;
}

double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

TEST(Redeal, NoStepDoesMostOfTheWork) {
    constexpr int tasks = 20'000;
    for (const std::string placement : {"cpus: 0-6\n", "spread: cpu\nbind: cpu\n"}) {
        const auto world = std::make_unique<World>(policies_saying(20, placement), test::plain());
        auto& assignments = world->assignments;
        assignments.use(world->placements.load);
        for (int i = 0; i < tasks; ++i) {
            const auto& slots = world->placements.policies[static_cast<std::size_t>(i % 20)].distributions[0];
            const DistributionId id{"p" + std::to_string(i % 20), 0, ""};
            (void)assignments.assign({.distribution = id, .slots = slots, .task = {i + 1, 7}, .present = {}});
            assignments.weigh(id, {i + 1, 7}, i * 7919 % one_cpu);
        }
        Redeal redeal(world->placements, assignments);
        double longest = 0, sum = 0;
        for (bool is_done = false; !is_done;) {
            const double begin = cpu_seconds();
            is_done = redeal.step([] { return true; });
            const double took = cpu_seconds() - begin;
            longest = std::max(longest, took);
            sum += took;
        }
        std::printf("measured: a re-deal of %d tasks: %.1f ms, the longest step %.2f ms\n", tasks, sum * 1e3,
                    longest * 1e3);
        EXPECT_LT(longest, sum / 2) << placement; // a seventh, when nothing else runs
        EXPECT_GT(redeal.goodness().busiest, 0);
    }
}

/// Busy tasks that were all on CPUs 0 and 1 beside idle ones everywhere: those may go to all CPUs now.
std::unique_ptr<World> widened(int busy, int idle) {
    auto world = std::make_unique<World>(policies_saying(2, "spread: cpu\nbind: cpu\n"), test::plain());
    world->assignments.use(world->placements.load);
    for (int i = 0; i < idle; ++i) {
        seat(world->assignments, 1, {100'000 + i, 7}, static_cast<unsigned>(i % 8));
        world->assignments.weigh({"p1", 0, ""}, {100'000 + i, 7}, one_cpu / 5000);
    }
    for (int i = 0; i < busy; ++i) {
        seat(world->assignments, 0, {1 + i, 7}, static_cast<unsigned>(i % 2));
        world->assignments.weigh({"p0", 0, ""}, {1 + i, 7}, one_cpu / 5);
    }
    return world;
}

TEST(Redeal, ManyTasksLeaveTwoCpusForAllOthersBesideACrowd) {
    const auto world = widened(200, 3900);
    for (int round = 0; round < 3; ++round) {
        Redeal redeal(world->placements, world->assignments);
        redeal.step([] { return false; });
        for (const auto& move : redeal.moves())
            world->assignments.move(move.task, move.table, move.from, move.to);
    }
    Weight sum = 0;
    for (unsigned cpu = 0; cpu < 8; ++cpu)
        sum += world->assignments.load().on_cpu(cpu);
    EXPECT_LE(world->assignments.load().busiest(), sum / 4 * 3 / 2);
}

TEST(Redeal, NoStepListsMoreThanAFewMoves) {
    const auto world = widened(1000, 0);
    Redeal redeal(world->placements, world->assignments);
    std::size_t before = 0, most = 0;
    for (bool is_done = false; !is_done; before = redeal.moves().size()) {
        is_done = redeal.step([] { return true; });
        most = std::max(most, redeal.moves().size() - before);
    }
    EXPECT_GT(redeal.moves().size(), 400U);
    EXPECT_LE(most, 128U);
}

} // namespace
} // namespace affinityd::planner

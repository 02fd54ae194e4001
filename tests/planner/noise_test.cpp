// SPDX-License-Identifier: Apache-2.0
// What tasks use varies from minute to minute: a re-deal does not run after chance.
#include "lives.hpp"
#include "planner/estimate.hpp"
#include "planner/redeal.hpp"
#include "world.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

namespace affinityd::planner {
namespace {

using test::World;

/// What thread i uses in the next minute.
using Use = std::function<Weight(unsigned i)>;

struct Outcome {
    std::vector<std::size_t> moves; ///< of each minute, sorted
    double busiest = 0;             ///< on average, in the minute after the re-deal
};

constexpr unsigned cores = 32, minutes = 100, settling = 10;

/// Threads whose use is looked at each minute, and after that their slots are dealt anew or not.
Outcome live(unsigned threads, bool is_dealt, const Use& use) {
    World world({"match: {comm: app}\nspread: cpu\nbind: cpu\n"}, test::without_smt(cores));
    auto& assignments = world.assignments;
    assignments.use(world.placements.load);
    const DistributionId id{"p0", 0, ""};
    const auto& slots = world.placements.policies[0].distributions[0];
    const auto task = [](unsigned i) { return TaskId{static_cast<int>(i) + 1, 7}; };
    for (unsigned i = 0; i < threads; ++i)
        (void)assignments.assign({.distribution = id, .slots = slots, .task = task(i), .present = {}});
    Outcome outcome;
    for (unsigned minute = 0; minute < minutes; ++minute) {
        std::vector<Weight> load(cores), used(threads);
        for (unsigned i = 0; i < threads; ++i)
            used[i] = use(i);
        for (const auto& [one, seat] : assignments.seats())
            load[seat.now] += used[static_cast<std::size_t>(one.tid) - 1];
        for (unsigned i = 0; i < threads; ++i)
            assignments.weigh(id, task(i), used[i]);
        std::size_t moves = 0;
        if (is_dealt) {
            Redeal redeal(world.placements, assignments);
            redeal.step([] { return false; });
            moves = redeal.moves().size();
            for (const auto& move : redeal.moves())
                assignments.move(move.task, move.table, move.from, move.to);
        }
        if (minute < settling) continue;
        outcome.moves.push_back(moves);
        outcome.busiest += static_cast<double>(std::ranges::max(load)) / one_cpu / (minutes - settling);
    }
    std::ranges::sort(outcome.moves);
    return outcome;
}

/// The same use by chance, with and without re-deals. `worse`: what the busiest core may have more with them.
void expect_calm(unsigned threads, double worse, const std::function<Use()>& chance) {
    const auto calm = live(threads, true, chance()), still = live(threads, false, chance());
    const auto sum = std::accumulate(calm.moves.begin(), calm.moves.end(), 0.0);
    const double a_minute = sum / static_cast<double>(calm.moves.size());
    std::printf("measured: %u threads: %.2f moves a minute; the busiest core has %.2f, without moves %.2f\n",
                threads, a_minute, calm.busiest, still.busiest);
    EXPECT_LE(a_minute, 0.02 * threads);
    EXPECT_LE(calm.moves[calm.moves.size() / 2], 1U) << "the median";
    EXPECT_LE(calm.busiest, still.busiest * worse);
}

/// Each thread has its own mean use, and a fifth more or less by chance.
Use steady() {
    const auto dice = std::make_shared<test::Dice>(3);
    std::vector<Weight> means;
    for (unsigned i = 0; i < 4 * cores; ++i)
        means.push_back(dice->upto(900) * (one_cpu / 1000));
    return [dice, means](unsigned i) {
        double sum = 0; // of twelve: nearly normal
        for (int k = 0; k < 12; ++k)
            sum += dice->upto(1000) / 1000.0;
        return static_cast<Weight>(
            std::clamp(static_cast<double>(means[i]) * (1 + 0.2 * (sum - 6)), 0.0, 1.0 * one_cpu));
    };
}

/// Busy in some minutes, idle in others, by chance.
Use on_and_off(unsigned percent) {
    const auto dice = std::make_shared<test::Dice>(3);
    return [dice, percent](unsigned) { return dice->upto(99) < percent ? one_cpu : one_cpu / 500; };
}

TEST(Noise, SteadyThreadsStayWhereTheyAreWhenTheirUseVariesByAFifth) { expect_calm(4 * cores, 0.95, steady); }

TEST(Noise, ThreadsThatAreBusyInSomeMinutesOnlyStayWhereTheyAre) {
    expect_calm(4 * cores, 1.08, [] { return on_and_off(20); });
    expect_calm(2 * cores, 1.08, [] { return on_and_off(30); });
}

TEST(Noise, ThreadsThatAwakeOnOneCoreAreTakenApartInTheSecondRound) {
    World world({"match: {comm: app}\nspread: cpu\nbind: cpu\n"}, test::without_smt(cores));
    auto& assignments = world.assignments;
    assignments.use(world.placements.load);
    const DistributionId id{"p0", 0, ""};
    const auto& slots = world.placements.policies[0].distributions[0];
    for (int i = 0; i < 64; ++i)
        (void)assignments.assign({.distribution = id, .slots = slots, .task = {i + 1, 7}, .present = {}});
    const auto is_busy = [](int i) { return i == 0 || i == 32; };
    const auto is_together = [&] {
        return assignments.seats().find({1, 7})->second.now == assignments.seats().find({33, 7})->second.now;
    };
    ASSERT_TRUE(is_together());
    for (int minute = 0; minute < 22; ++minute) {
        for (int i = 0; i < 64; ++i)
            assignments.weigh(id, {i + 1, 7}, minute >= 20 && is_busy(i) ? one_cpu : one_cpu / 100);
        Redeal redeal(world.placements, assignments);
        redeal.step([] { return false; });
        for (const auto& move : redeal.moves())
            assignments.move(move.task, move.table, move.from, move.to);
        EXPECT_TRUE(minute >= 20 || is_together());
    }
    EXPECT_FALSE(is_together());
}

TEST(Estimate, TheFirstWeightIsTakenAsItIsAndLaterOnesAreAveraged) {
    Estimate estimate;
    EXPECT_EQ(estimate.weight(), one_cpu);
    estimate.weigh(one_cpu / 2);
    EXPECT_EQ(estimate.weight(), one_cpu / 2);
    EXPECT_EQ(estimate.error(), 0);
    estimate.weigh(one_cpu / 4);
    EXPECT_EQ(estimate.weight(), one_cpu * 3 / 8);
    EXPECT_EQ(estimate.error(), one_cpu / 8);
}

/// Four tasks on two CPUs; the two that use anything are on one of them, and nothing was known of them for
/// twenty minutes. In how many of the next minutes they are there.
int minutes_together(int rounds, const std::function<Weight(int minute)>& use) {
    World world({"match: {comm: app}\nspread: cpu\nbind: cpu\n"}, test::without_smt(2));
    auto& assignments = world.assignments;
    assignments.use(world.placements.load);
    const DistributionId id{"p0", 0, ""};
    const auto& slots = world.placements.policies[0].distributions[0];
    for (int i = 0; i < 4; ++i)
        (void)assignments.assign({.distribution = id, .slots = slots, .task = {i + 1, 7}, .present = {}});
    const auto cpu_of = [&](int tid) { return assignments.seats().find({tid, 7})->second.now; };
    int together = 0;
    for (int minute = -20; minute < rounds; ++minute) {
        for (int i = 0; i < 4; ++i)
            assignments.weigh(id, {i + 1, 7}, minute < 0 || i % 2 == 1 ? one_cpu / 500 : use(minute));
        Redeal redeal(world.placements, assignments);
        redeal.step([] { return false; });
        for (const auto& move : redeal.moves())
            assignments.move(move.task, move.table, move.from, move.to);
        together += minute >= 0 && cpu_of(1) == cpu_of(3) ? 1 : 0;
    }
    return together;
}

TEST(Noise, TasksThatAreBusyInEveryOtherMinuteShareNoCpuForGood) {
    for (const int period : {1, 2, 3, 5, 10})
        EXPECT_LE(minutes_together(300, [&](int minute) { return minute / period % 2 == 0 ? one_cpu : 0; }),
                  60)
            << period;
}

TEST(Noise, TasksThatUseMoreAndMoreAreTakenApartBeforeTheirCpuIsFull) {
    EXPECT_LE(
        minutes_together(100, [](int minute) { return std::min<Weight>(minute, 90) * (one_cpu / 100); }), 50);
}

TEST(Estimate, TheLongerATaskGoesOnAsItDoesTheLessItMayBeFromTheTruth) {
    Estimate estimate;
    Weight before = one_cpu;
    for (const int rounds : {10, 20, 30}) {
        for (int i = 0; i < rounds; ++i)
            estimate.weigh(i % 2 == 0 ? one_cpu : 0);
        EXPECT_NEAR(static_cast<double>(estimate.weight()), one_cpu / 2.0, one_cpu / 20.0);
        EXPECT_LT(estimate.error(), before * 9 / 10);
        before = estimate.error();
    }
}

TEST(Estimate, AChangeLittleByLittleIsFollowed) {
    Estimate estimate;
    for (int i = 0; i < 100; ++i)
        estimate.weigh(i % 2 == 0 ? one_cpu / 10 : 0);
    for (int i = 0; i < 100; ++i)
        estimate.weigh(i * one_cpu / 100 + (i % 2 == 0 ? one_cpu / 10 : 0));
    EXPECT_GT(estimate.weight(), one_cpu * 8 / 10);
}

TEST(Estimate, OneOddWeightCountsLittleAndTheSecondRunningTakesOver) {
    Estimate estimate;
    for (int i = 0; i < 20; ++i)
        estimate.weigh(0);
    estimate.weigh(one_cpu);
    EXPECT_LE(estimate.weight(), one_cpu / 10);
    estimate.weigh(one_cpu);
    EXPECT_EQ(estimate.weight(), one_cpu);
}

} // namespace
} // namespace affinityd::planner

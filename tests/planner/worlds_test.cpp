// SPDX-License-Identifier: Apache-2.0
// Worlds made by chance: what births, deaths and moves come to, against the best that a search
// finds which knows nothing of how the planner works.
#include "lives.hpp"
#include "recorded.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace affinityd::planner {
namespace {

using test::Life;
using test::Recipe;

/// A few recorded machines; none where there are no recordings.
const std::vector<machine::Machine>& recorded() {
    static const auto all = [] {
        constexpr std::uintmax_t largest = 24U << 10;
        constexpr std::size_t most_cpus = 96, most_machines = 8;
        std::vector<machine::Machine> machines;
        for (const auto& name : test::recordings(largest)) {
            auto machine = test::read_recording(name);
            if (!machine || machine->topology.online.count() > most_cpus ||
                machine->topology.online.count() < 2)
                continue;
            machine->nics.clear();
            machine->irqs = {};
            link_vectors(*machine);
            machines.push_back(std::move(*machine));
            if (machines.size() == most_machines) break;
        }
        return machines;
    }();
    return all;
}

Recipe recipe(unsigned seed) {
    if (!recorded().empty() && seed % 4 == 0)
        return test::recipe(seed, recorded()[seed / 4 % recorded().size()]);
    test::Dice dice(seed * 2);
    return test::recipe(seed, test::invented(dice));
}

std::vector<std::size_t> in_order(const Recipe& recipe) {
    std::vector<std::size_t> order(recipe.texts.size());
    std::iota(order.begin(), order.end(), 0U);
    return order;
}

/// All that happens, with a look now and then, and some minutes of peace at the end; how many moved.
std::size_t live_through(Life& life, const Recipe& recipe) {
    constexpr int minutes = 12;
    std::size_t moves = 0, events = 0;
    for (const int event : recipe.events) {
        life.event(event);
        if (++events % 10 == 0) moves += life.look();
    }
    for (int i = 0; i < minutes; ++i)
        moves += life.look();
    return moves;
}

/// The lowest busiest core that is found.
double search(const Life& life) {
    auto [packing, now] = life.packing();
    packing.start_at(now);
    EXPECT_NEAR(packing.busiest(), life.busiest(), 0.001);
    std::mt19937 random(1);
    double best = packing.anneal(random, 8000, 0);
    packing.start_greedily();
    return std::min(best, packing.anneal(random, 8000, 0));
}

TEST(Worlds, TheBusiestCoreIsNearTheBestThatASearchFinds) {
    constexpr unsigned worlds = 200;
    std::vector<double> quotients;
    std::size_t moves = 0, events = 0;
    for (unsigned seed = 0; seed < worlds; ++seed) {
        SCOPED_TRACE(seed);
        const auto world = recipe(seed);
        Life life(world, in_order(world));
        moves += live_through(life, world);
        events += world.events.size();
        const double busiest = life.busiest();
        const double best = std::min(busiest, search(life));
        quotients.push_back(busiest > 0 ? best / busiest : 1);
    }
    std::ranges::sort(quotients);
    const auto good = std::ranges::count_if(quotients, [](double quotient) { return quotient >= 0.9; });
    const double per_event = static_cast<double>(moves) / static_cast<double>(events);
    fmt::print("measured: {} worlds; best/busiest: lowest {:.3f}, 1 % below {:.3f}, 5 % below {:.3f}, "
               "10 % below {:.3f}; {:.1f} % have 0.9 or more; {:.2f} moves per birth or death\n",
               worlds, quotients.front(), quotients[worlds / 100], quotients[worlds / 20],
               quotients[worlds / 10], 100.0 * static_cast<double>(good) / worlds, per_event);
    EXPECT_GE(good, worlds * 60 / 100);
    EXPECT_GE(quotients.front(), 0.5);
    EXPECT_LE(per_event, 0.2);
}

TEST(Worlds, TheSameEventsGiveTheSamePlan) {
    for (unsigned seed = 0; seed < 1000; seed += 20) {
        const auto world = recipe(seed), again = recipe(seed);
        Life one(world, in_order(world)), other(again, in_order(again));
        EXPECT_EQ(live_through(one, world), live_through(other, again)) << seed;
        EXPECT_EQ(one.masks(), other.masks()) << seed;
        EXPECT_FALSE(one.masks().empty() && !one.alive().empty()) << seed;
    }
}

} // namespace
} // namespace affinityd::planner

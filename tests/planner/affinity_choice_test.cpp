// SPDX-License-Identifier: Apache-2.0
// Scripted worlds: each candidate has a cost, which drifts and has 5 % of noise from round to round.
#include "planner/affinity_choice.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace affinityd::planner {
namespace {

using policy::Model;
using policy::Steer;

const std::vector<AutoCandidate> all_candidates{
    {}, {Model::process, Steer::none}, {Model::full, Steer::none}, {Model::full, Steer::automatic}};
constexpr double round_seconds = 10;

class ScriptedWorld {
  public:
    explicit ScriptedWorld(unsigned seed) : random_(seed) {}
    std::vector<double> gains = std::vector<double>(all_candidates.size()); ///< 0.1: 10 % cheaper than none
    double drift = 0;                                                       ///< of all costs, in an hour
    double bytes_per_second = 1e8;
    std::function<void(const AutoCandidate&, Effect&)> disturb = [](const auto&, auto&) {};

    [[nodiscard]] double gain(const AutoCandidate& candidate) const {
        return gains[static_cast<std::size_t>(std::ranges::find(all_candidates, candidate) -
                                              all_candidates.begin())];
    }
    [[nodiscard]] double best() const { return std::max(0.0, *std::ranges::max_element(gains)); }
    double uniform(double low, double high) { return std::uniform_real_distribution(low, high)(random_); }
    std::mt19937& random() { return random_; }

    /// Ten seconds at once: the noise is that of a round.
    AffinityTrial::End run(const AutoCandidate& before = {}) {
        AffinityTrial trial(all_candidates, before, round_seconds);
        std::normal_distribution<double> noise(0, 0.05);
        for (double hours = 0; !trial.end(); hours += (round_seconds + 2) / 3600) {
            const auto present = trial.present();
            const double cost = 2 * (1 - gain(present)) * std::exp(drift * hours + noise(random_));
            Effect growth{.seconds = round_seconds, .bytes = bytes_per_second * round_seconds};
            growth.cpu_seconds = cost * growth.bytes / 1e9;
            disturb(present, growth);
            trial.add({.seconds = 2});
            trial.add(growth);
            rounds = trial.rounds();
        }
        return *trial.end();
    }
    std::size_t rounds = 0;

  private:
    std::mt19937 random_;
};

/// Costs that differ by what a seed says; the best is at least 5 % cheaper than none, or none is cheaper.
ScriptedWorld scripted_world(unsigned seed, bool has_gain) {
    ScriptedWorld world(seed);
    world.drift = world.uniform(-0.3, 0.3);
    do {
        for (std::size_t i = 1; i < all_candidates.size(); ++i)
            world.gains[i] = has_gain ? world.uniform(-0.1, 0.3) : world.uniform(-0.2, 0.0);
    } while (has_gain && world.best() <= 0.05);
    return world;
}

TEST(AffinityChoice, FindsGainsAboveFivePercent) {
    unsigned right = 0;
    for (unsigned seed = 0; seed < 100; ++seed) {
        auto world = scripted_world(seed, true);
        const auto end = world.run();
        const bool is_right = end.is_decided && world.gain(end.choice) >= world.best() - 0.02;
        right += is_right;
    }
    RecordProperty("right", std::to_string(right));
    EXPECT_GE(right, 95U);
}

TEST(AffinityChoice, StaysAtNoneWithoutGain) {
    unsigned right = 0;
    for (unsigned seed = 0; seed < 100; ++seed) {
        auto world = scripted_world(1000 + seed, false);
        if (seed % 2 == 0) world.gains = {0, 0, 0, 0};
        right += world.run().choice == AutoCandidate{};
    }
    RecordProperty("right", std::to_string(right));
    EXPECT_GE(right, 95U);
}

/// Traffic by day and night, and by the week; a new program or machine now and then.
TEST(AffinityChoice, DoesNotFlapInAThousandDays) {
    ScriptedWorld world(7);
    AutoChoice choice;
    std::size_t changes = 0, unexplained = 0, trials = 0;
    bool has_changed = true;
    world.gains = {0, 0.02, 0.12, 0.125};
    ChoiceBasis now{.text_hash = 1, .machine = 1, .bytes_per_second = 0};
    for (std::int64_t at = 0; at < 1000LL * 86400; at += 3600) {
        const auto day = at / 86400, hour = at / 3600 % 24;
        if (at > 0 && at % (50LL * 86400) == 0) {
            ++now.machine;
            has_changed = true;
            for (std::size_t i = 1; i < all_candidates.size(); ++i)
                world.gains[i] = day % 100 == 0 ? world.uniform(0.06, 0.25) : world.uniform(-0.1, 0);
        }
        now.bytes_per_second = (day % 7 < 5 ? 1e8 : 3e7) * (hour < 8 ? 0.2 : 1) * world.uniform(0.8, 1.2);
        if (trials > 0 && !is_due(choice, now, at)) continue;
        ++trials;
        const auto end = world.run(choice.candidate);
        const bool is_same = end.choice == choice.candidate;
        changes += !is_same;
        unexplained += !is_same && !has_changed;
        has_changed = false;
        choice = {end.choice, end.why, at, is_same ? choice.confirmed + 1 : 0, now};
    }
    EXPECT_EQ(unexplained, 0U);
    EXPECT_GE(changes, 10U);
    EXPECT_LT(trials, 1000U);
}

TEST(AffinityChoice, EndsAtOnceWhenErrorsRise) {
    ScriptedWorld world(3);
    world.gains = {0, 0.2, 0.2, 0.2};
    world.disturb = [&](const AutoCandidate& present, Effect& growth) {
        growth.errors = present.model == Model::full ? 200 : 0;
    };
    const auto end = world.run(all_candidates[2]);
    EXPECT_EQ(end.choice, AutoCandidate{});
    EXPECT_EQ(world.rounds, 3U);
    EXPECT_NE(end.why.find("under full"), std::string::npos) << end.why;
}

TEST(AffinityChoice, LeavesOutWhatMakesProgramsWait) {
    ScriptedWorld world(5);
    world.gains = {0, 0.1, 0.3, 0.3};
    world.disturb = [&](const AutoCandidate& present, Effect& growth) {
        growth.wait_seconds = (present.model == Model::full ? 0.5 : 0.1) * growth.cpu_seconds;
    };
    EXPECT_EQ(world.run().choice, all_candidates[1]);
}

TEST(AffinityChoice, FindsGainsThoughTheCpuTimeOfOneRoundWasNotCounted) {
    ScriptedWorld world(1);
    world.gains[1] = 0.3;
    bool was_lost = false;
    world.disturb = [&](const AutoCandidate&, Effect& growth) {
        if (!std::exchange(was_lost, true)) growth.cpu_seconds = 0;
    };
    EXPECT_EQ(world.run().choice, all_candidates[1]);
}

TEST(AffinityChoice, IsBrokenOffWhenTrafficEnds) {
    ScriptedWorld world(4);
    world.gains = {0, 0.2, 0.2, 0.2};
    std::size_t asked = 0;
    world.disturb = [&](const AutoCandidate&, Effect& growth) {
        if (++asked > 5) growth.bytes = 1000;
    };
    const auto end = world.run(all_candidates[1]);
    EXPECT_FALSE(end.is_decided);
    EXPECT_EQ(end.choice, all_candidates[1]);
    EXPECT_EQ(asked, 15U);
}

TEST(AffinityChoice, IsTriedAgainWhenItsBasisHasChanged) {
    const AutoChoice choice{{}, "", 10'000, 0, {.text_hash = 1, .machine = 2, .bytes_per_second = 1e8}};
    auto now = choice.basis;
    EXPECT_FALSE(is_due(choice, now, 1'000'000));
    now.text_hash = 9;
    EXPECT_FALSE(is_due(choice, now, 10'000 + 3599));
    EXPECT_TRUE(is_due(choice, now, 10'000 + 3600));
    now = choice.basis;
    now.bytes_per_second = 1.9e8;
    EXPECT_FALSE(is_due(choice, now, 1'000'000));
    now.bytes_per_second = 2.1e8;
    EXPECT_TRUE(is_due(choice, now, 10'000 + 3600));
    now.bytes_per_second = 4e7;
    EXPECT_TRUE(is_due(choice, now, 10'000 + 3600));
    auto confirmed = choice;
    confirmed.confirmed = 2;
    EXPECT_FALSE(is_due(confirmed, now, 10'000 + 3 * 3600));
    EXPECT_TRUE(is_due(confirmed, now, 10'000 + 4 * 3600));
}

TEST(AffinityChoice, NamesOfCandidatesCanBeReadAgain) {
    for (const auto& candidate : all_candidates)
        EXPECT_EQ(candidate_of(to_string(candidate)), candidate);
    EXPECT_FALSE(candidate_of("irq"));
}

} // namespace
} // namespace affinityd::planner

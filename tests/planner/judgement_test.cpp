// SPDX-License-Identifier: Apache-2.0
#include "planner/judgement.hpp"

#include <cstddef>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace affinityd::planner {
namespace {

using Verdict = Judgement::Verdict;

/// Spans of ten seconds with 3 % noise.
std::vector<Effect> spans(std::size_t count, double cost_per_gigabyte, Effect like = {.bytes = 1e9}) {
    std::mt19937 random(count * 1000 + static_cast<unsigned>(cost_per_gigabyte * 100));
    std::normal_distribution<double> noise(1, 0.03);
    std::vector<Effect> made;
    for (std::size_t i = 0; i < count; ++i) {
        auto& span = made.emplace_back(like);
        span.seconds = 10;
        span.cpu_seconds = cost_per_gigabyte * (like.bytes > 0 ? like.bytes / 1e9 : 1) * noise(random);
    }
    return made;
}

struct JudgedCase {
    const char* name;
    std::vector<Effect> before, after;
    Verdict verdict;
    const char* says; ///< in its sentence
};

TEST(Judgement, GoesByCostsAndHarm) {
    const std::vector<JudgedCase> cases{
        {"cheaper", spans(8, 2.0), spans(8, 1.5), Verdict::better, "% less CPU time per GB (between "},
        {"dearer", spans(8, 2.0), spans(9, 2.5), Verdict::worse, "% more CPU time per GB (between "},
        {"alike", spans(8, 2.0), spans(9, 2.0), Verdict::no_difference, "CPU time per GB: "},
        {"too few", spans(8, 2.0), spans(3, 1.0), Verdict::unknown, "8 rounds without the policy and 3 with"},
        {"none at all", {}, {}, Verdict::unknown, "0 rounds without the policy and 0 with"},
        {"traffic ended", spans(8, 2.0), spans(8, 1.0, {.bytes = 1000}), Verdict::unknown,
         "too little traffic"},
        {"no traffic", spans(8, 2.0, {}), spans(8, 1.0, {}), Verdict::better, "% less CPU time per second"},
        {"starved", spans(8, 20, {.wait_seconds = 0.1}), spans(8, 10, {.wait_seconds = 10}), Verdict::unknown,
         "waited longer"},
        {"starved no more", spans(8, 10, {.wait_seconds = 10}), spans(8, 20, {.wait_seconds = 0.1}),
         Verdict::unknown, "more may have been done"},
        {"idle", spans(8, 0, {}), spans(8, 0, {}), Verdict::unknown, "took no CPU time"},
        {"errors", spans(8, 2.0), spans(1, 1.0, {.bytes = 1e9, .errors = 9}), Verdict::worse,
         "errors in the journal rose from 0 to 54 a minute"},
        {"an error", spans(8, 2.0), spans(8, 1.0, {.bytes = 1e9, .errors = 0.125}), Verdict::better, "less"},
        {"cheaper, and waits longer", spans(8, 2.0, {.bytes = 1e9, .wait_seconds = 0.1}),
         spans(8, 1.5, {.bytes = 1e9, .wait_seconds = 1}), Verdict::unknown, "waited longer for a CPU"},
        {"dearer, and waits longer", spans(8, 2.0, {.bytes = 1e9, .wait_seconds = 0.1}),
         spans(9, 2.5, {.bytes = 1e9, .wait_seconds = 1}), Verdict::worse, "more CPU time per GB"},
    };
    for (const auto& one : cases) {
        const auto judgement = judge(one.before, one.after);
        EXPECT_EQ(judgement.verdict, one.verdict) << one.name << ": " << judgement.sentence;
        EXPECT_NE(judgement.sentence.find(one.says), std::string::npos)
            << one.name << ": " << judgement.sentence;
        EXPECT_TRUE(judgement.sentence.starts_with(to_string(judgement.verdict))) << judgement.sentence;
    }
}

TEST(Judgement, ShowsAllFigures) {
    const auto judgement =
        judge(spans(8, 2, {.bytes = 1e9, .wait_seconds = 0.1, .reads = 100, .local_reads = 20}),
              spans(8, 1, {.bytes = 1e9, .wait_seconds = 0.05, .reads = 100, .local_reads = 90}));
    ASSERT_EQ(judgement.figures.size(), 6U);
    EXPECT_NEAR(judgement.figures[0].before->estimate, 2, 0.1);
    EXPECT_NEAR(judgement.figures[0].change->estimate, -0.5, 0.05);
    EXPECT_NEAR(judgement.figures[2].after->estimate, 5, 1e-9); // ms per second
    EXPECT_NEAR(judgement.figures[4].after->estimate, 90, 1e-9);
    EXPECT_FALSE(judgement.figures[5].change); // errors: 0 on both sides
}

TEST(Judgement, ErrorsThatComeInBurstsAreNoHarm) {
    std::vector<Effect> before = spans(8, 2), after = spans(1, 2);
    for (std::size_t i = 0; i < before.size(); ++i)
        before[i].errors = i % 4 == 0 ? 80 : 0;
    after[0].errors = 80;
    EXPECT_EQ(harm(before, after), "");
    after[0].errors = 2000;
    EXPECT_NE(harm(before, after), "");
}

/// Costs that rise or fall by a tenth while it is tried, and a policy that changes nothing.
TEST(Judgement, ADriftIsNoEffect) {
    unsigned wrong = 0;
    std::mt19937 random(1);
    std::normal_distribution<double> noise(1, 0.03);
    for (unsigned trial = 0; trial < 200; ++trial) {
        Alternation turns(2, 10);
        for (unsigned round = 0; round < 60; ++round) {
            const double cost = (trial % 2 == 0 ? 1 + round / 600.0 : 1.1 - round / 600.0) * noise(random);
            EXPECT_EQ(turns.present(), (round % 4 == 1 || round % 4 == 2) ? 1U : 0U);
            EXPECT_TRUE(turns.is_settling());
            EXPECT_FALSE(turns.add({.seconds = 2, .cpu_seconds = 100, .bytes = 1e9}));
            ASSERT_TRUE(turns.add({.seconds = 10, .cpu_seconds = 2 * cost, .bytes = 1e9}));
            turns.count();
        }
        const auto verdict = judge(turns.rounds(0), turns.rounds(1)).verdict;
        wrong += verdict != Judgement::Verdict::no_difference;
    }
    EXPECT_LE(wrong, 20U); // 95 of 100 intervals hold zero
}

} // namespace
} // namespace affinityd::planner

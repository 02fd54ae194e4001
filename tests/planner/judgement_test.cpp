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
        {"too few", spans(8, 2.0), spans(3, 1.0), Verdict::unknown, "8 samples before and 3 after"},
        {"none at all", {}, {}, Verdict::unknown, "0 samples before and 0 after"},
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
        {"retransmits", spans(8, 2.0, {.bytes = 1e9, .retransmits = 10}),
         spans(2, 1.0, {.bytes = 1e9, .retransmits = 40}), Verdict::worse,
         "retransmits of TCP rose from 10 to 40 per GB"},
        {"retransmits of more traffic", spans(8, 2.0, {.bytes = 1e9, .retransmits = 10}),
         spans(8, 2.0, {.bytes = 4e9, .retransmits = 40}), Verdict::no_difference, "CPU time per GB"},
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
    ASSERT_EQ(judgement.figures.size(), 7U);
    EXPECT_NEAR(judgement.figures[0].before->estimate, 2, 0.1);
    EXPECT_NEAR(judgement.figures[0].change->estimate, -0.5, 0.05);
    EXPECT_NEAR(judgement.figures[2].after->estimate, 5, 1e-9); // ms per second
    EXPECT_NEAR(judgement.figures[4].after->estimate, 90, 1e-9);
    EXPECT_FALSE(judgement.figures[4].is_better_if_less);
    EXPECT_FALSE(judgement.figures[6].change); // errors: 0 on both sides
}

TEST(Judgement, RetransmitsThatComeInBurstsAreNoHarm) {
    std::vector<Effect> before = spans(8, 2), after = spans(1, 2);
    for (std::size_t i = 0; i < before.size(); ++i)
        before[i].retransmits = i % 4 == 0 ? 80 : 0;
    after[0].retransmits = 80;
    EXPECT_EQ(harm(before, after), "");
    after[0].retransmits = 2000;
    EXPECT_NE(harm(before, after), "");
}

} // namespace
} // namespace affinityd::planner

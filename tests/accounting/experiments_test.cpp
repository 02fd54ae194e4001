// SPDX-License-Identifier: Apache-2.0
#include "accounting/measurements.hpp"
#include "support/tree.hpp"

#include <ctime>

#include <gtest/gtest.h>

namespace affinityd::accounting {
namespace {

Experiment latency(const std::string& detail) {
    return {.kind = "latency",
            .summary = "same LLC 20 ns",
            .subject = "CPUs 0-3",
            .seconds = 1.5,
            .detail = detail};
}

TEST(Experiments, AreKeptAndTheNewestIsFound) {
    const test::Tree tree;
    const auto folder = tree.path("state");
    EXPECT_FALSE(*newest_experiment(folder, "latency")) << "there is no history yet";
    EXPECT_EQ(keep_experiment(folder, latency("{\"first\":1}")), "");
    ASSERT_TRUE(keep_experiment(folder, {.kind = "smt", .summary = "share", .detail = "{}"}));
    ASSERT_TRUE(keep_experiment(folder, latency("{\"second\":2}")));
    const auto newest = newest_experiment(folder, "latency");
    ASSERT_TRUE(newest && *newest);
    EXPECT_EQ((*newest)->detail, "{\"second\":2}");
    EXPECT_EQ((*newest)->summary, "same LLC 20 ns");
    EXPECT_EQ((*newest)->subject, "CPUs 0-3");
    EXPECT_EQ((*newest)->seconds, 1.5);
    EXPECT_GT((*newest)->time, 1700000000);
    EXPECT_FALSE(*newest_experiment(folder, "cache"));
}

TEST(Experiments, MayBeAsLongAsAMatrixOf256Cpus) {
    const test::Tree tree;
    const std::string large(most_experiment_detail, ' ');
    ASSERT_TRUE(keep_experiment(tree.path(), latency(large)));
    EXPECT_EQ((*newest_experiment(tree.path(), "latency"))->detail.size(), large.size());
    EXPECT_FALSE(keep_experiment(tree.path(), latency(large + " ")));
    const auto report = read_history(tree.path(), "latency");
    ASSERT_TRUE(report && *report);
    ASSERT_EQ((*report)->records.size(), 1U);
    EXPECT_EQ((*report)->records.front().reason, "same LLC 20 ns");
    EXPECT_EQ((*report)->records.front().detail, "") << "a list of them needs no details";
}

TEST(Experiments, OfNoKindAreRefused) {
    const test::Tree tree;
    EXPECT_FALSE(keep_experiment(tree.path(), {.kind = "ttcp", .summary = "", .detail = "{}"}));
    EXPECT_FALSE(keep_experiment(tree.path(), {.kind = "", .summary = "", .detail = "{}"}));
}

TEST(Experiments, ArePutBesideAWriterThatHasTheHistoryOpen) {
    const test::Tree tree;
    Measurements daemon(tree.path());
    state::MeasurementRecord record;
    record.time = std::time(nullptr);
    record.kind = "passive";
    record.outcome = "done";
    daemon.keep(record);
    ASSERT_TRUE(keep_experiment(tree.path(), latency("{}")));
    daemon.keep(record);
    EXPECT_TRUE(daemon.take_notices().empty());
    EXPECT_EQ(daemon.history("").records.size(), 3U);
    EXPECT_EQ(daemon.history("latency").records.size(), 1U);
}

TEST(Experiments, ThatCannotBeWrittenAreAnError) {
    const test::Tree tree;
    tree.file("state", "no folder");
    EXPECT_FALSE(keep_experiment(tree.path("state"), latency("{}")));
}

} // namespace
} // namespace affinityd::accounting

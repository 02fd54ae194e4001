// SPDX-License-Identifier: Apache-2.0
// The smaller parts of the room: log, settings, task table, lineage.
#include "app/lineage.hpp"
#include "app/truce.hpp"
#include "simulated.hpp"

#include <cmath>

#include <fmt/format.h>

namespace affinityd::app {
namespace {

using std::chrono::seconds;

TEST(Log, WhatRepeatsIsShownAtPowersOfTen) {
    test::ReadableLog log;
    for (int i = 0; i < 250; ++i)
        log.log().warn("trouble");
    EXPECT_EQ(log.text(), "warning trouble\nwarning trouble (10 times)\nwarning trouble (100 times)\n");
    EXPECT_EQ(log.log().count("trouble"), 250U);
    EXPECT_EQ(log.log().count("another"), 0U);
    log.log().error("another");
    EXPECT_EQ(log.times("error another"), 1U) << "each text is counted by itself";
}

TEST(Log, WarningsAndErrorsOfOneTextAreOneMessage) {
    test::ReadableLog log;
    log.log().warn("x");
    log.log().error("x");
    EXPECT_EQ(log.times("x"), 1U);
}

TEST(Log, AnAnswerIsShownEachTimeAndSoIsNews) {
    test::ReadableLog log;
    for (int i = 0; i < 5; ++i) {
        log.log().refuse("no");
        log.log().info("news");
        log.log().debug("detail");
    }
    EXPECT_EQ(log.times("error no\n"), 5U);
    EXPECT_EQ(log.times("info news\n"), 5U);
    EXPECT_EQ(log.times("debug detail\n"), 5U);
}

TEST(Truce, FewCorrectionsAreNoFightAndRestsGetLonger) {
    constexpr Truce::Terms terms{.window = seconds(60), .first = seconds(10)};
    Truce truce;
    Truce::Clock::time_point now{std::chrono::hours(1)};
    for (int i = 0; i < 20; ++i) {
        EXPECT_FALSE(truce.correct(terms, now)) << "once in a while";
        now += seconds(61);
    }
    for (int i = 0; i < 4; ++i)
        EXPECT_FALSE(truce.correct(terms, now += seconds(1)));
    seconds expected{10};
    for (int rest = 0; rest < 10; ++rest) {
        EXPECT_TRUE(truce.correct(terms, now += seconds(1))) << rest;
        EXPECT_TRUE(truce.holds(now + expected - seconds(1))) << rest;
        EXPECT_FALSE(truce.holds(now + expected)) << rest;
        now += expected;
        expected = std::min(2 * expected, seconds(640));
    }
    EXPECT_FALSE(truce.correct(terms, now += seconds(61 + 640))) << "the other has given up";
    EXPECT_EQ(truce.corrections(), 1U);
}

TEST(Log, NamesAreNotFormats) {
    test::ReadableLog log;
    log.log().warn("task {} {0:%s} %n");
    EXPECT_EQ(log.text(), "warning task {} {0:%s} %n\n");
}

TEST(Log, MemoryIsBoundedWhateverIsSaid) {
    test::ReadableLog log;
    log.log().warn("first");
    for (int i = 0; i < 5000; ++i)
        log.log().warn("task " + std::to_string(i));
    EXPECT_EQ(log.log().count("first"), 0U) << "old texts go";
}

TEST(TaskTable, ALaterProcessOfTheSameNumberIsAnother) {
    TaskTable table;
    table.insert({5, 100}).policy = 3;
    table.insert({5, 100}).comm = "same";
    ASSERT_NE(table.find(5), nullptr);
    EXPECT_EQ(table.find(5)->policy, 3U);
    EXPECT_EQ(table.find(5)->comm, "same");
    table.find(5)->threads[5] = {};
    const auto& later = table.insert({5, 200});
    EXPECT_EQ(later.policy, 0U);
    EXPECT_TRUE(later.threads.empty()) << "nothing of the one before";
    EXPECT_EQ(table.processes().size(), 1U);
    table.erase(5);
    EXPECT_EQ(table.find(5), nullptr);
    EXPECT_EQ(table.find(6), nullptr);
}

TEST(Lineage, WalksUpToTheTopAndEndsInARing) {
    const test::Machine machine;
    machine.process(10, "top");
    machine.process(11, "middle", "0-3", 10);
    machine.process(12, "leaf", "0-3", 11);
    machine.process(20, "ring", "0-3", 21);
    machine.process(21, "ring", "0-3", 20);
    const auto root = *host::Root::open(machine.path());
    policy::PolicySet set;
    set.policies.resize(2);
    set.policies[0].name = "upper";
    set.policies[1].name = "lower";
    TaskTable table;
    table.insert({10, 100}).policy = 0;
    table.insert({11, 100}).policy = 1;
    table.insert({21, 100}).policy = 7; // of a set that is no more
    const ProcessLineage lineage(root, table, set);
    const auto ancestors = [&](int parent) {
        inventory::PlainFacts facts;
        facts.ppid = parent;
        return lineage.ancestor_policies(facts);
    };
    EXPECT_EQ(ancestors(11), (std::vector<std::string>{"lower", "upper"})) << "the nearest first";
    EXPECT_EQ(ancestors(12), (std::vector<std::string>{"lower", "upper"})) << "over one that is under none";
    EXPECT_TRUE(ancestors(20).empty());
    EXPECT_TRUE(ancestors(0).empty());
    EXPECT_TRUE(ancestors(999).empty()) << "a parent that has gone";
}

} // namespace
} // namespace affinityd::app

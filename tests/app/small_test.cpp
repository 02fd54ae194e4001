// SPDX-License-Identifier: Apache-2.0
// The smaller parts of the room: log, settings, task table, lineage.
#include "app/lineage.hpp"
#include "simulated.hpp"

#include <fmt/format.h>

namespace affinityd::app {
namespace {

TEST(Log, ATextThatRepeatsIsShownAtPowersOfTen) {
    test::ReadableLog log;
    for (int i = 0; i < 250; ++i)
        log.log().warn("trouble");
    EXPECT_EQ(log.text(), "warning trouble\nwarning trouble (10 times)\nwarning trouble (100 times)\n");
    EXPECT_EQ(log.log().count("trouble"), 250U);
    EXPECT_EQ(log.log().count("another"), 0U);
    log.log().error("another");
    EXPECT_EQ(log.times("error another"), 1U) << "each text is counted by itself";
}

TEST(Log, AWarningAndAnErrorOfOneTextAreOneMessage) {
    test::ReadableLog log;
    log.log().warn("x");
    log.log().error("x");
    EXPECT_EQ(log.times("x"), 1U);
}

TEST(Log, AnAnswerAndNewsAreShownEachTime) {
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

TEST(Log, OfAKindTenAMinuteAreShownAndTheOthersAreCounted) {
    test::ReadableLog log;
    for (int tid = 0; tid < 5000; ++tid)
        log.log().warn("task " + std::to_string(tid) + " could not be moved", "refused");
    EXPECT_EQ(log.times("could not be moved"), 10U);
    EXPECT_EQ(log.log().count("refused"), 5000U);
    log.log().warn("CPU 3 is full", "diverted");
    EXPECT_EQ(log.times("CPU 3 is full"), 1U) << "each kind has its own ten";
}

TEST(Log, OneUsersMessagesLeaveRoomForTheOthers) {
    test::ReadableLog log;
    log.log().know_owners([](int pid) { return pid < 1000 ? 65534U : static_cast<unsigned>(pid); });
    for (int pid = 1; pid < 900; ++pid)
        log.log().warn(fmt::format("task {} could not be moved", pid), {"refused", pid});
    log.log().warn("task 2000 could not be moved", {"refused", 2000});
    EXPECT_EQ(log.times("could not be moved"), 11U);
    EXPECT_EQ(log.times("task 2000"), 1U);
    for (int pid = 3000; pid < 9000; ++pid) // users in abundance
        log.log().warn(fmt::format("task {} could not be moved", pid), {"refused", pid});
    EXPECT_EQ(log.times("could not be moved"), 30U);
}

TEST(Log, WhatWasHeldBackIsToldAfterTheMinute) {
    test::ReadableLog log;
    for (int i = 0; i < 2321; ++i)
        log.log().warn("task could not be moved", "refused");
    log.log().tell_held_back();
    EXPECT_EQ(log.times("more"), 0U) << "the minute is not over";
    log.log().tell_held_back(Log::Clock::now() + std::chrono::minutes(2));
    EXPECT_EQ(log.times("refused: and 2,311 more in the last minute\n"), 1U);
    log.log().tell_held_back(Log::Clock::now() + std::chrono::minutes(4));
    EXPECT_EQ(log.times("more"), 1U) << "nothing since";
}

TEST(Log, NamesOfAnyBytesAreOneLineWithoutControlCharacters) {
    ::unsetenv("JOURNAL_STREAM");
    const std::string name = "\x1b[2J\nwarning forged\r\x9b\u202e\u2028\x7f";
    const std::string shown = "\\x1b[2J\\nwarning forged\\r\\x9b\\u202e\\u2028\\x7f";
    test::ReadableLog log;
    log.log().info("info " + name);
    log.log().warn("warn " + name);
    log.log().error("error " + name, "kind");
    log.log().debug("debug " + name);
    log.log().event("0123", "event " + name);
    EXPECT_EQ(log.text(), "info info " + shown + "\nwarning warn " + shown + "\nerror error " + shown +
                              "\ndebug debug " + shown + "\nwarning event " + shown + "\n");
    log.log().refuse("two\nlines\x1b");
    log.log().report("two\nlines\x1b");
    EXPECT_EQ(log.times("two\nlines\\x1b\n"), 2U) << "what is the administrator's own";
}

TEST(Log, BracesInNamesAreNoFormats) {
    test::ReadableLog log;
    log.log().warn("task {} {0:%s} %n");
    EXPECT_EQ(log.text(), "warning task {} {0:%s} %n\n");
}

TEST(Log, OldTextsAreForgottenWhenThereAreMany) {
    test::ReadableLog log;
    log.log().warn("first");
    for (int i = 0; i < 5000; ++i)
        log.log().warn("task " + std::to_string(i));
    EXPECT_EQ(log.log().count("first"), 0U) << "old texts go";
}

TEST(TaskTable, ALaterProcessOfTheSameNumberBeginsWithAnEmptyEntry) {
    TaskTable table;
    table.insert({5, 100}).policy = 3;
    table.insert({5, 100}).comm = "same";
    ASSERT_NE(table.find(5), nullptr);
    EXPECT_EQ(table.find(5)->policy, 3U);
    EXPECT_EQ(table.find(5)->comm, "same");
    table.find(5)->threads.insert({5, 100});
    const auto& later = table.insert({5, 200});
    EXPECT_EQ(later.policy, 0U);
    EXPECT_TRUE(later.threads.empty()) << "nothing of the one before";
    EXPECT_EQ(table.processes().size(), 1U);
    table.erase(5);
    EXPECT_EQ(table.find(5), nullptr);
    EXPECT_EQ(table.find(6), nullptr);
}

TEST(Lineage, AncestorsAreListedToTheTopAndARingEnds) {
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

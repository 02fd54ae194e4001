// SPDX-License-Identifier: Apache-2.0
// The smaller parts of the room: log, settings, task table, lineage.
#include "app/lineage.hpp"
#include "app/settings.hpp"
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

Settings read(const std::string& text) {
    Settings settings;
    const auto done = read_settings("f.yaml", text, settings);
    EXPECT_TRUE(done) << done.error().to_string();
    return settings;
}

TEST(Settings, WhatIsNotSaidStays) {
    for (const char* text : {"", "# nothing\n", "version: 1\n"}) {
        const auto settings = read(text);
        EXPECT_EQ(settings.reconcile_interval, seconds(60));
        EXPECT_EQ(settings.measure.interval, seconds(0));
        EXPECT_EQ(settings.measure.duration, seconds(5));
        EXPECT_EQ(settings.measure.target, "");
    }
}

TEST(Settings, AllKeysInAllUnits) {
    const auto settings = read(
        "version: 1\nreconcile: 2m\nmeasure:\n  interval: 12h\n  duration: 7\n  target: 192.0.2.1:5001\n");
    EXPECT_EQ(settings.reconcile_interval, seconds(120));
    EXPECT_EQ(settings.measure.interval, seconds(12 * 3600));
    EXPECT_EQ(settings.measure.duration, seconds(7));
    EXPECT_EQ(settings.measure.target, "192.0.2.1:5001");
    EXPECT_EQ(read("reconcile: 1d\n").reconcile_interval, seconds(86400));
    EXPECT_EQ(read("reconcile: 1s\n").reconcile_interval, seconds(1));
    EXPECT_EQ(read("measure: {interval: 0}\n").measure.interval, seconds(0));
    EXPECT_EQ(read("measure: {interval: 30d}\n").measure.interval, seconds(30 * 86400));
    EXPECT_EQ(read("measure: {target: \"[2001:db8::1]:5001\"}\n").measure.target, "[2001:db8::1]:5001");
}

TEST(Settings, EachFaultSaysWhereAndWhatWouldBeRight) {
    struct Case {
        const char* text;
        const char* place;
        const char* told;
    };
    const Case cases[] = {{"reconcile: 0\n", "f.yaml:1:12", "from 1 s to 86400 s"},
                          {"reconcile: 2d\n", "f.yaml:1:12", "from 1 s to 86400 s"},
                          {"reconcile: -5\n", "f.yaml:1:12", "from 1 s"},
                          {"reconcile: 5 minutes\n", "f.yaml:1:12", "like 30s or 5m"},
                          {"reconcile: [5]\n", "f.yaml:1:12", "like 30s or 5m"},
                          {"reconcile: 99999999999999999999\n", "f.yaml:1:12", "from 1 s"},
                          {"reconcile:\n", "f.yaml:1:1", "from 1 s"},
                          {"version: 1\nmeasure:\n  target:\n", "f.yaml:3:3", "expected host:port"},
                          {"version: 2\n", "f.yaml:1:10", "expected version: 1"},
                          {"version: 1\nreconcil: 5\n", "f.yaml:2:1", "unknown key 'reconcil'"},
                          {"measure:\n  every: 5\n", "f.yaml:2:3", "unknown key 'every'"},
                          {"measure: 5\n", "f.yaml:1:10", "expected keys with values"},
                          {"measure:\n  duration: 61\n", "f.yaml:2:13", "from 1 s to 60 s"},
                          {"measure:\n  interval: 31d\n", "f.yaml:2:13", "from 0 s"},
                          {"measure:\n  target: host\n", "f.yaml:2:11", "expected host:port"},
                          {"measure:\n  target: host:0\n", "f.yaml:2:11", "expected host:port"},
                          {"measure:\n  target: host:65536\n", "f.yaml:2:11", "expected host:port"},
                          {"measure:\n  target: :5001\n", "f.yaml:2:11", "expected host:port"},
                          {"measure:\n  target: --loopback:1\n", "f.yaml:2:11", "expected host:port"},
                          {"measure:\n  target: []\n", "f.yaml:2:11", "expected host:port"},
                          {"reconcile: 5\nreconcile: 6\n", "f.yaml:2:1", "twice"},
                          {"- 5\n", "f.yaml:1:1", "expected keys with values"},
                          {"reconcile: [\n", "f.yaml:", ""},
                          {"\t: x\n", "f.yaml:", ""}};
    for (const auto& one : cases) {
        Settings settings;
        const auto done = read_settings("f.yaml", one.text, settings);
        ASSERT_FALSE(done) << one.text;
        EXPECT_EQ(done.error().subject.rfind(one.place, 0), 0U)
            << one.text << ": " << done.error().to_string();
        EXPECT_NE(done.error().message.find(one.told), std::string::npos)
            << one.text << ": " << done.error().to_string();
    }
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

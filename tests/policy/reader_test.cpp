// SPDX-License-Identifier: Apache-2.0
#include "policy/reader.hpp"

#include <chrono>
#include <cstdio>

#include <gtest/gtest.h>

namespace {

using namespace affinityd::policy;

std::string said_of(const ReadResult& result) {
    std::string text;
    for (const auto& d : result.diagnostics)
        text += to_string(d) + "\n";
    return text;
}

ReadResult read(const std::string& text) {
    return read_policies({{"/etc/affinityd/policies.d/x.yaml", text}});
}

TEST(Reader, SmallestFileOfTheContract) {
    const auto result =
        read("version: 1\nmatch: {comm: redis-server}\naffinity: process\ncpus: \"1\"\nbind: set\n");
    ASSERT_TRUE(result.ok()) << said_of(result);
    EXPECT_TRUE(result.diagnostics.empty()) << said_of(result);
    ASSERT_EQ(result.set.policies.size(), 1U);
    const auto& policy = result.set.policies.front();
    EXPECT_EQ(policy.name, "x");
    EXPECT_EQ(policy.model, Model::process);
    EXPECT_EQ(policy.placement.bind, Bind::set);
    ASSERT_TRUE(policy.placement.cpus);
    EXPECT_EQ(policy.placement.cpus->ids, (affinityd::CpuSet{1}));
    ASSERT_EQ(policy.match.children.size(), 1U);
    EXPECT_EQ(policy.match.children[0].condition.field, Condition::Field::comm);
    ASSERT_EQ(policy.match.children[0].condition.patterns.size(), 1U);
    EXPECT_TRUE(policy.match.children[0].condition.patterns[0].matches("redis-server"));
}

TEST(Reader, DesignExample) {
    const auto result = read(R"(description: nginx workers, each on the core of the NIC queue that feeds it
match:                       # all keys must hold; a list means any of
  unit: nginx.service
affinity: full
nics: auto
cpus: nic & !smt
spread: core
bind: llc
threads:
  - {name: "nginx*worker*", spread: core, bind: core}
  - {name: "*", cpus: housekeeping}
exclusive: false
drift: enforce
on_stop: restore
)");
    ASSERT_TRUE(result.ok()) << said_of(result);
    const auto& policy = result.set.policies.at(0);
    EXPECT_EQ(policy.model, Model::full);
    ASSERT_EQ(policy.threads.size(), 2U);
    EXPECT_EQ(policy.threads[0].placement.bind, Bind::core);
    EXPECT_EQ(to_string(*policy.threads[0].placement.cpus),
              "nic & !smt"); // the policy's, where the rule states none
    EXPECT_EQ(to_string(*policy.threads[1].placement.cpus), "housekeeping");
    EXPECT_EQ(policy.threads[1].placement.spread, Spread::core);
}

TEST(Reader, SaysWhereAndWhatWouldBeRight) {
    const auto result = read("version: 1\nmatch: {comm: x}\ncpu: \"1\"\n");
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(said_of(result),
              "/etc/affinityd/policies.d/x.yaml:3:1: error: unknown key 'cpu' (did you mean 'cpus'?)\n");
    EXPECT_TRUE(result.set.policies.empty());
}

TEST(Reader, OverridesAndMasks) {
    const std::string good = "version: 1\nmatch: {comm: a}\n";
    const auto result = read_policies({{"/v/a.yaml", good},
                                       {"/v/b.yaml", good},
                                       {"/e/a.yaml", "# off\n"},
                                       {"/e/b.yaml", "version: 1\nmatch: {comm: b}\npriority: 7\n"}});
    ASSERT_TRUE(result.ok()) << said_of(result);
    ASSERT_EQ(result.set.policies.size(), 1U);
    EXPECT_EQ(result.set.policies[0].name, "b");
    EXPECT_EQ(result.set.policies[0].priority, 7);
    ASSERT_EQ(result.set.overrides.size(), 2U);
    EXPECT_EQ(result.set.overrides[0].path, "/v/a.yaml");
    EXPECT_EQ(result.set.overrides[0].by, "/e/a.yaml");
    EXPECT_TRUE(result.set.overrides[0].masked);
    EXPECT_FALSE(result.set.overrides[1].masked);
}

TEST(Reader, OneTotalOrder) {
    const auto result = read_policies({
        {"/e/zz.yaml", "version: 1\npriority: 10\nmatch: {comm: a*}\n"},
        {"/e/b.yaml", "version: 1\npriority: 9\nmatch: {comm: a, user: u}\n"},
        {"/e/d.yaml", "version: 1\ndefault: true\ncpus: housekeeping\npriority: 100\n"},
        {"/e/c.yaml", "version: 1\nmatch: {comm: c*}\n"},
        {"/e/a.yaml", "version: 1\nmatch: {comm: d*}\n"},
        {"/e/e.yaml", "version: 1\nmatch: {comm: c}\n"},
    });
    ASSERT_TRUE(result.ok()) << said_of(result);
    std::string names;
    for (const auto& policy : result.set.policies)
        names += policy.name + " ";
    EXPECT_EQ(names, "zz b e a c d ");
}

TEST(Reader, ManyFindingsAreCutButAnErrorIsAlwaysSaid) {
    std::string names;
    for (unsigned at = 0; at < 200; ++at)
        names += "a, ";
    const auto mild = read("version: 1\nmatch: {comm: [" + names + "b]}\n");
    EXPECT_EQ(mild.diagnostics.size(), 100U);
    EXPECT_TRUE(mild.ok());
    EXPECT_EQ(mild.set.policies.size(), 1U);
    const auto bad = read("version: 1\nmatch: {comm: [" + names + "b]}\nbind: wide\n");
    EXPECT_EQ(bad.diagnostics.size(), 101U);
    EXPECT_FALSE(bad.ok());
    EXPECT_TRUE(bad.set.policies.empty());
}

// Thousands of expressions in a file held up the daemon's loop for seconds.
TEST(Reader, RegularExpressionsOfAFileAreBounded) {
    const auto with = [](unsigned number, bool equal) {
        std::string text = "version: 1\nmatch:\n  user: u\n  comm:\n";
        for (unsigned at = 0; at < number; ++at)
            text += "    - /a" + std::to_string(equal ? 0 : at) + "/\n";
        return read(text);
    };
    EXPECT_TRUE(with(256, false).ok());
    EXPECT_TRUE(with(4000, true).ok()) << "equal ones are compiled once";
    EXPECT_EQ(said_of(with(257, false)),
              "/etc/affinityd/policies.d/x.yaml:261:7: error: 'comm': more than 256 different regular "
              "expressions in one file\n");
}

// Looking for a near word for each took most of the time.
TEST(Reader, AFileOfUnknownKeysIsNotReadToItsEnd) {
    std::string text = "version: 1\n";
    for (unsigned at = 0; at < 9000; ++at)
        text += "an_unknown_key_" + std::to_string(at) + ": 1\n";
    const auto start = std::chrono::steady_clock::now();
    for (unsigned at = 0; at < 5; ++at)
        EXPECT_EQ(read(text).diagnostics.size(), 100U);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took.count(), 8.0);
    std::printf("measured: 5 files of 9,000 unknown keys in %.0f ms\n", took.count() * 1000);
}

} // namespace

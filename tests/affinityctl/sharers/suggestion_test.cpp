// SPDX-License-Identifier: Apache-2.0
// The policy that follows from a graph, as `check` reads it.
#include "affinityctl/sharers/report.hpp"
#include "affinityctl/sharers/watch.hpp"
#include "machine/machines.hpp"
#include "policy/reader.hpp"
#include "seen_wakes.hpp"
#include "support/tree.hpp"

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

using affinityd::machine::test::two_sockets;
using test::SeenWakes;
namespace policy = affinityd::policy;

Suggestion suggested(const Wakes& wakes, const WatchedProcess& process = {4711, "pairs", ""}) {
    return suggestion_for(process, wakes, graph_of(wakes), two_sockets());
}

/// The policy as it is read; it must have no fault and no warning.
policy::Policy policy_of(const std::string& text) {
    const auto result = policy::read_policies({policy::Document{.path = "sharers.yaml", .text = text}});
    for (const auto& diagnostic : result.diagnostics)
        EXPECT_EQ(diagnostic.severity, policy::Severity::note) << diagnostic.message << "\n" << text;
    EXPECT_EQ(result.set.policies.size(), 1U) << text;
    return result.set.policies.empty() ? policy::Policy{} : result.set.policies.front();
}

SeenWakes pairs() {
    SeenWakes seen;
    seen.thread(1, "pairs")
        .thread(2, "a-1")
        .thread(3, "a-2")
        .thread(4, "b-1")
        .thread(5, "b-2")
        .thread(6, "rest");
    seen.pair(2, 3, 1000).pair(4, 5, 500);
    return seen;
}

TEST(Suggestion, HasARuleForEachGroup) {
    const auto suggestion = suggested(pairs().wakes);
    const auto read = policy_of(suggestion.policy);
    ASSERT_EQ(read.threads.size(), 2U) << suggestion.policy;
    EXPECT_TRUE(read.threads[0].names[0].matches("a-1"));
    EXPECT_TRUE(read.threads[0].names[1].matches("a-2"));
    EXPECT_EQ(read.threads[0].placement.spread, policy::Spread::any);
    EXPECT_EQ(read.threads[0].placement.bind, policy::Bind::llc);
    EXPECT_TRUE(read.threads[1].names[0].matches("b-1"));
    EXPECT_EQ(suggestion.void_level, "") << "two cache groups";
    EXPECT_FALSE(suggestion.is_together);
}

TEST(Suggestion, SaysOfWhichLevelTheMachineHasOneGroup) {
    const auto void_level = [](const affinityd::topology::Topology& machine, int threads) {
        SeenWakes seen;
        for (int worker = 2; worker <= threads; ++worker)
            seen.thread(worker, "w").pair(1, worker, 1000);
        seen.thread(1, "main");
        return suggestion_for({4711, "p", ""}, seen.wakes, graph_of(seen.wakes), machine).void_level;
    };
    auto one_node = two_sockets();
    one_node.nodes = {{0, one_node.online, 1U << 30, {}}};
    one_node.packages = {one_node.online};
    EXPECT_EQ(void_level(one_node, 3), "") << "it has two cache groups";
    EXPECT_EQ(void_level(one_node, 6), "node") << "too many threads for one of them";
    one_node.caches = {{3, affinityd::topology::Cache::Type::unified, 1U << 20, one_node.online}};
    EXPECT_EQ(void_level(one_node, 3), "llc");
}

TEST(Suggestion, OfOneGroupOfAllIsTogether) {
    SeenWakes seen;
    seen.thread(1, "main")
        .thread(2, "w")
        .thread(3, "w")
        .pair(1, 2, 1000)
        .pair(1, 3, 900)
        .thread(9, "gone", -1);
    const auto suggestion = suggested(seen.wakes);
    const auto read = policy_of(suggestion.policy);
    EXPECT_EQ(read.together, policy::Together::llc) << suggestion.policy;
    EXPECT_TRUE(read.threads.empty());
}

TEST(Suggestion, IsAsWideAsTheGroup) {
    SeenWakes seen;
    seen.thread(1, "main");
    for (int worker = 2; worker < 9; ++worker)
        seen.thread(worker, "w" + std::to_string(worker)).pair(2, worker, worker == 2 ? 0 : 500);
    const auto suggestion = suggested(seen.wakes);
    ASSERT_EQ(suggestion.rules.size(), 1U);
    EXPECT_EQ(suggestion.rules[0].level, "llc") << "no group of that machine has seven CPUs: the widest";
}

TEST(Suggestion, NoneWithoutGroupsOrWords) {
    SeenWakes apart;
    apart.thread(1, "main").thread(2, "w");
    EXPECT_EQ(suggested(apart.wakes).policy, "");
    SeenWakes namesakes;
    namesakes.thread(1, "w").thread(2, "w").thread(3, "w").thread(4, "w").thread(5, "w");
    namesakes.pair(2, 4, 1000);
    const auto suggestion = suggested(namesakes.wakes);
    EXPECT_EQ(suggestion.policy, "");
    EXPECT_FALSE(suggestion.rules[0].choice);
    auto nameless = pairs();
    EXPECT_EQ(suggested(nameless.wakes, {4711, "", ""}).policy, "");
}

TEST(Suggestion, SaysWhichGroupHasNoRule) {
    SeenWakes seen;
    seen.thread(1, "main").thread(2, "w").thread(3, "w").thread(4, "w").thread(5, "w").thread(6, "x").thread(
        7, "y");
    const auto suggestion = suggested(seen.pair(2, 4, 1000).pair(6, 7, 900).wakes);
    EXPECT_NE(suggestion.policy.find("# w (2), w (4): no rule can mean these alone"), std::string::npos)
        << suggestion.policy;
    EXPECT_EQ(policy_of(suggestion.policy).threads.size(), 1U);
}

TEST(Suggestion, NamesServices) {
    const auto suggestion = suggested(pairs().wakes, {4711, "pairs", "dev-\\x2d.service"});
    EXPECT_NE(suggestion.policy.find("match: {unit: \"dev-\\\\\\\\x2d.service\"}"), std::string::npos)
        << suggestion.policy;
    (void)policy_of(suggestion.policy);
}

TEST(Suggestion, HostileNamesStayText) {
    const char* names[] = {
        "a\": [}#", "x\n- {name: y}", "\x1b]0;x\x07", "'%@`!&*|>", "\xe2\x80\xae", "/.*/", "-", "~", " #",
        "?"};
    for (const char* name : names) {
        SeenWakes seen;
        seen.thread(1, name)
            .thread(2, name)
            .thread(3, "other")
            .thread(4, "third")
            .pair(2, 3, 1000)
            .pair(1, 4, 1000);
        const auto suggestion = suggested(seen.wakes, {4711, name, ""});
        EXPECT_TRUE(std::ranges::all_of(suggestion.policy,
                                        [](char c) { return (c >= ' ' && c <= '~') || c == '\n'; }));
        if (suggestion.policy.empty()) continue;
        const auto read = policy_of(suggestion.policy);
        ASSERT_EQ(read.match.children.size(), 1U);
        EXPECT_TRUE(read.match.children[0].condition.patterns[0].matches(name)) << suggestion.policy;
    }
}

} // namespace
} // namespace affinityctl

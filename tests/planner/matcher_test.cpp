// SPDX-License-Identifier: Apache-2.0
#include "machines.hpp"
#include "planner/matcher.hpp"

namespace affinityd::planner {
namespace {

using test::policies;

inventory::PlainFacts facts(const std::string& comm) {
    inventory::PlainFacts facts;
    facts.comm_text = comm;
    facts.exe_text = "/usr/sbin/" + comm;
    facts.cmdline_text = comm + " -g daemon off;";
    facts.cgroup_text = "/system.slice/" + comm + ".service";
    facts.user_text = "www-data";
    facts.user_id = 33;
    facts.group_text = "www-data";
    facts.ports = {80, 443};
    return facts;
}

struct Case {
    std::string match;
    bool matches;
};

TEST(Matcher, EachSelectorHoldsForTheProcessesItDescribes) {
    const Case cases[] = {
        {"comm: nginx", true},
        {"comm: ngin", false},
        {"comm: \"ngin*\"", true},
        {"comm: \"/^ng.nx$/\"", true},
        {"comm: [redis, nginx]", true},
        {"exe: \"*/sbin/nginx\"", true},
        {"exe: nginx", false},
        {"cmdline: \"*daemon off*\"", true},
        {"unit: nginx.service", true},
        {"unit: system.slice", true},
        {"unit: \"nginx\"", false},
        {"cgroup: \"/system.slice/*\"", true},
        {"user: www-data", true},
        {"user: \"33\"", true},
        {"user: root", false},
        {"group: www-data", true},
        {"listen: 443", true},
        {"listen: 8080", false},
        {"listen: \"400-500\"", true},
        {"container: \"*\"", false},
        {"{comm: nginx, user: root}", false},
        {"{comm: nginx, not: {user: root}}", true},
        {"{comm: nginx, not: {user: www-data}}", false},
        {"any: [{comm: redis}, {user: www-data}]", true},
        {"any: [{comm: redis}, {user: root}]", false},
        {"{comm: nginx, all: [{listen: 80}, {listen: 443}]}", true},
        {"parent: p9", false},
    };
    const auto process = facts("nginx");
    for (const auto& c : cases) {
        const std::string match = c.match.front() == '{' ? c.match : "{" + c.match + "}";
        const auto set = policies({"match: " + match + "\ncpus: \"0\"\n"});
        EXPECT_EQ(Matcher(set).match(process, test::NoLineage()).has_value(), c.matches) << c.match;
    }
}

TEST(Matcher, TheFirstInTheTotalOrderWinsAndExplainSaysWhyEarlierOnesDidNot) {
    const auto set = policies({"match: {comm: nginx}\n", "match: {comm: nginx, user: root}\npriority: 10\n",
                               "match: {comm: redis}\npriority: 20\n"});
    const Matcher matcher(set);
    const auto process = facts("nginx");
    const auto policy = matcher.match(process, test::NoLineage());
    ASSERT_TRUE(policy);
    EXPECT_EQ(set.policies[*policy].name, "p0");
    const auto verdicts = matcher.explain(process, test::NoLineage());
    ASSERT_EQ(verdicts.size(), 3U);
    EXPECT_EQ(verdicts[0].field, "comm");
    EXPECT_EQ(verdicts[0].wanted, "redis");
    EXPECT_EQ(verdicts[0].found, "nginx");
    EXPECT_EQ(verdicts[1].field, "user");
    EXPECT_TRUE(verdicts[2].matched);
}

TEST(Matcher, KernelThreadsAreMatchedOnlyByPoliciesThatAskForThem) {
    const auto set =
        policies({"match: {comm: \"k*\"}\n", "match: {comm: \"k*\", kthread: true}\npriority: -1\n"});
    auto process = facts("kswapd0");
    process.kernel = true;
    const auto policy = Matcher(set).match(process, test::NoLineage());
    ASSERT_TRUE(policy);
    EXPECT_EQ(set.policies[*policy].name, "p1");
}

/// Facts that count what is asked of them.
struct Counting final : inventory::ProcessFacts {
    inventory::PlainFacts inner;
    mutable unsigned expensive = 0;
    explicit Counting(const std::string& comm) : inner(facts(comm)) {}
    [[nodiscard]] TaskId id() const override { return inner.id(); }
    [[nodiscard]] int parent() const override { return 0; }
    [[nodiscard]] bool is_kernel() const override { return false; }
    [[nodiscard]] const std::string& comm() const override { return inner.comm(); }
    [[nodiscard]] const std::string& exe() const override { return ++expensive, inner.exe(); }
    [[nodiscard]] const std::string& cmdline() const override { return ++expensive, inner.cmdline(); }
    [[nodiscard]] const std::string& cgroup() const override { return ++expensive, inner.cgroup(); }
    [[nodiscard]] unsigned uid() const override { return ++expensive, inner.uid(); }
    [[nodiscard]] unsigned gid() const override { return ++expensive, inner.gid(); }
    [[nodiscard]] const std::string& user() const override { return ++expensive, inner.user(); }
    [[nodiscard]] const std::string& group() const override { return ++expensive, inner.group(); }
    [[nodiscard]] const std::vector<std::uint16_t>& listen_ports() const override {
        return ++expensive, inner.listen_ports();
    }
};

TEST(Matcher, ExpensiveFactsAreReadOnlyForPoliciesStillInPlay) {
    const auto set = policies(
        {"match: {listen: 80, comm: nginx, user: root}\n", "match: {cmdline: \"*x*\", comm: \"redis*\"}\n"});
    const Matcher matcher(set);
    const Counting unrelated("bash");
    EXPECT_FALSE(matcher.match(unrelated, test::NoLineage()));
    EXPECT_EQ(unrelated.expensive, 0U);
    const Counting near("nginx");
    EXPECT_FALSE(matcher.match(near, test::NoLineage()));
    EXPECT_EQ(near.expensive, 2U) << "user and uid decide, so the ports are not listed";
}

TEST(Matcher, TheFirstThreadRuleThatFitsNameAndIndexWins) {
    const auto set = policies({"match: {comm: a}\nthreads:\n  - {index: 0, cpus: \"0\"}\n  - {name: \"w*\", "
                               "index: \"1-2\", cpus: \"1\"}\n  - {name: \"w*\", cpus: \"2\"}\n"});
    const auto& policy = set.policies.front();
    EXPECT_EQ(Matcher::thread_rule(policy, "w1", 0), 0U);
    EXPECT_EQ(Matcher::thread_rule(policy, "w1", 2), 1U);
    EXPECT_EQ(Matcher::thread_rule(policy, "w1", 3), 2U);
    EXPECT_EQ(Matcher::thread_rule(policy, "x", 3), std::nullopt);
}

} // namespace
} // namespace affinityd::planner

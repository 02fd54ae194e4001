// SPDX-License-Identifier: Apache-2.0
#include "../support/plain_facts.hpp"
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

TEST(Matcher, ALongNameMeansWhatTheKernelKeepsOfIt) {
    const auto process = facts("systemd-network"); // 15 bytes
    for (const char* name : {"systemd-networkd", "\"systemd-networkd*\"", "[redis, systemd-networkd]"}) {
        const auto set = policies({"match: {comm: " + std::string(name) + "}\ncpus: \"0\"\n"});
        EXPECT_TRUE(Matcher(set).match(process, test::NoLineage())) << name;
    }
    const auto set =
        policies({"match: {comm: app}\nthreads: [{name: \"C2 CompilerThread*\", cpus: \"0\"}]\n"});
    EXPECT_EQ(Matcher::thread_rule(set.policies[0], "C2 CompilerThre", 5), 0U);
    EXPECT_FALSE(Matcher::thread_rule(set.policies[0], "C1 CompilerThre", 5));
}

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
    const auto lists = policies({"match: {any: [{comm: redis}, {unit: redis.service}]}\n",
                                 "match: {user: www-data, not: [{comm: redis}, {comm: \"ng*\"}]}\n"});
    for (const auto& verdict : Matcher(lists).explain(facts("nginx"), test::NoLineage()))
        EXPECT_EQ(verdict.found, verdict.field == "any"
                                     ? "comm \"nginx\", unit \"nginx.service, system.slice\""
                                     : "comm \"nginx\"");
}

/// A process that sees files and ports of its own.
struct Elsewhere final : inventory::PlainFacts {
    explicit Elsewhere(const std::string& comm) : PlainFacts(facts(comm)) {}
    bool exe_is_true = true;
    std::vector<std::uint16_t> ports_elsewhere;
    std::map<std::string, inventory::Pod> pods; ///< by container
    [[nodiscard]] const inventory::Pod& pod(const std::string& id) const override {
        const auto found = pods.find(id);
        return found == pods.end() ? ProcessFacts::pod(id) : found->second;
    }
    [[nodiscard]] bool is_exe_true() const override { return exe_is_true; }
    [[nodiscard]] const std::vector<std::uint16_t>& foreign_ports() const override { return ports_elsewhere; }
};

bool is_matched(const std::string& match, const inventory::ProcessFacts& process) {
    const auto set = policies({"match: " + match + "\n"});
    return Matcher(set).match(process, test::NoLineage()).has_value();
}

const std::string container = "/system.slice/docker-" + std::string(64, 'a') + ".scope";
const std::string users_group = "/user.slice/user-1000.slice/user@1000.service";

TEST(Matcher, UnitsAndContainersAreTheSystemsUnlessUsersAreMeant) {
    const std::vector<std::pair<std::string, std::string>> forged{
        {"unit: nginx.service", users_group + "/app.slice/nginx.service"},
        {"unit: nginx.service", users_group + "/system.slice/nginx.service"},
        {"unit: system.slice", users_group + "/system.slice/nginx.service"},
        {"unit: web.slice", users_group + "/web.slice/x.service"},
        {"container: aaaaaaaaaaaa", users_group + "/docker-" + std::string(64, 'a') + ".scope"},
        {"container: web1", users_group + "/lxc/web1"},
        {"container: web1", "/lxc.payload.evil/lxc/web1"},
    };
    for (const auto& [condition, path] : forged) {
        auto process = facts("nginx");
        process.cgroup_text = path;
        EXPECT_FALSE(is_matched("{" + condition + "}", process)) << condition << " " << path;
        EXPECT_TRUE(is_matched("{user-units: true, " + condition + "}", process)) << condition << " " << path;
        EXPECT_TRUE(is_matched("{user-units: true, any: [{" + condition + "}, {comm: x}]}", process))
            << "and in the maps below";
        EXPECT_FALSE(
            is_matched("{user-units: true, any: [{user-units: false, " + condition + "}]}", process));
    }
    auto manager = facts("nginx");
    manager.cgroup_text = users_group + "/app.slice/nginx.service";
    EXPECT_TRUE(is_matched("{unit: user@1000.service}", manager)) << "the unit of all that is below it";
    EXPECT_TRUE(is_matched("{unit: user-1000.slice}", manager));
}

TEST(Matcher, APathThatIsAnothersHereCountsOnlyInAContainerThatIsNamed) {
    Elsewhere process("nginx");
    process.exe_is_true = false;
    EXPECT_FALSE(is_matched("{exe: /usr/sbin/nginx}", process));
    EXPECT_FALSE(is_matched("{exe: /usr/sbin/nginx, comm: nginx}", process));
    EXPECT_FALSE(is_matched("{exe: /usr/sbin/nginx, container: \"*\"}", process)) << "it is in none";
    process.cgroup_text = container;
    EXPECT_FALSE(is_matched("{exe: /usr/sbin/nginx}", process))
        << "a container's files are not this machine's";
    EXPECT_TRUE(is_matched("{exe: /usr/sbin/nginx, container: aaaaaaaaaaaa}", process));
    EXPECT_TRUE(is_matched("{container: aaaaaaaaaaaa, any: [{exe: /usr/sbin/nginx}, {comm: x}]}", process));
    EXPECT_TRUE(is_matched("{exe: /usr/sbin/nginx, all: [{container: aaaaaaaaaaaa}]}", process));
    EXPECT_FALSE(
        is_matched("{exe: /usr/sbin/nginx, any: [{container: aaaaaaaaaaaa}, {comm: nginx}]}", process))
        << "the container is not what decides";
    EXPECT_FALSE(is_matched("{exe: /usr/sbin/nginx, not: {container: bbbbbbbbbbbb}}", process));
    process.cgroup_text = users_group + container;
    EXPECT_FALSE(is_matched("{exe: /usr/sbin/nginx, container: aaaaaaaaaaaa}", process));
}

TEST(Matcher, PodsAreThoseOfContainersThatRootMade) {
    Elsewhere process("nginx");
    process.exe_is_true = false;
    process.pods[std::string(64, 'a')] = {"web-1", "shop"};
    EXPECT_FALSE(is_matched("{pod: web-1}", process)) << "it is in no container";
    for (const auto& [path, is_roots] :
         {std::pair{container, true}, std::pair{users_group + container, false}}) {
        process.cgroup_text = path;
        for (const auto* match :
             {"{pod: \"web-*\"}", "{namespace: shop}", "{pod: web-1, exe: /usr/sbin/nginx}",
              "{namespace: [test, shop], comm: nginx}"})
            EXPECT_EQ(is_matched(match, process), is_roots) << match << " " << path;
        for (const auto* match : {"{pod: shop}", "{namespace: web-1}", "{pod: \"\", namespace: \"*\"}"})
            EXPECT_FALSE(is_matched(match, process)) << match << " " << path;
    }
    process.cgroup_text = container;
    process.pods.clear();
    EXPECT_FALSE(is_matched("{pod: \"*\"}", process)) << "nothing is known of its pod";
}

TEST(Matcher, PortsOfAnotherNetworkNamespaceCountOnlyInAContainerThatIsNamed) {
    Elsewhere process("nginx");
    process.ports = {8080};
    process.ports_elsewhere = {80};
    EXPECT_FALSE(is_matched("{listen: 80}", process));
    EXPECT_TRUE(is_matched("{listen: 8080}", process));
    process.cgroup_text = container;
    EXPECT_FALSE(is_matched("{listen: 80}", process));
    EXPECT_TRUE(is_matched("{listen: 80, container: \"docker:*\"}", process));
}

TEST(Matcher, ExplainSaysWhatLooksRightAndDoesNotCount) {
    Elsewhere process("nginx");
    process.cgroup_text = users_group + "/nginx.service";
    process.exe_is_true = false;
    process.ports = {};
    process.ports_elsewhere = {80};
    const auto set = policies(
        {"match: {unit: nginx.service}\n", "match: {exe: /usr/sbin/nginx}\n", "match: {listen: 80}\n"});
    for (const auto& verdict : Matcher(set).explain(process, test::NoLineage())) {
        EXPECT_FALSE(verdict.matched);
        const auto* expected = verdict.field == "unit"  ? "nginx.service by a name that is not the system's"
                               : verdict.field == "exe" ? "/usr/sbin/nginx by a mount of its own"
                                                        : "80 in another network namespace";
        EXPECT_NE(verdict.found.find(expected), std::string::npos) << verdict.field << ": " << verdict.found;
    }
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
    mutable unsigned arguments = 0; ///< of them
    explicit Counting(const std::string& comm) : inner(facts(comm)) {}
    [[nodiscard]] TaskId id() const override { return inner.id(); }
    [[nodiscard]] int parent() const override { return 0; }
    [[nodiscard]] bool is_kernel() const override { return false; }
    [[nodiscard]] const std::string& comm() const override { return inner.comm(); }
    [[nodiscard]] const std::string& exe() const override { return ++expensive, inner.exe(); }
    [[nodiscard]] bool is_exe_true() const override { return ++expensive, true; }
    [[nodiscard]] const std::string& cmdline() const override {
        return ++expensive, ++arguments, inner.cmdline();
    }
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
    const Counting other("redis");
    EXPECT_FALSE(is_matched("{exe: /usr/sbin/nginx}", other));
    EXPECT_EQ(other.expensive, 1U) << "the path says that it is another: no file is looked for";
}

TEST(Matcher, ArgumentsAreReadLastAndOnlyIfTheyDecide) {
    const Counting process("nginx");
    for (const char* other :
         {"user: postgres", "group: postgres", "unit: redis.service", "cgroup: \"/redis*\"",
          "container: \"*\"", "listen: 8080", "exe: /usr/bin/redis", "parent: p9"})
        EXPECT_FALSE(is_matched("{cmdline: \"*\", " + std::string(other) + "}", process)) << other;
    EXPECT_EQ(process.arguments, 0U);
    const auto set =
        policies({"match: {user: www-data}\npriority: 10\n", "match: {cmdline: \"*\"}\npriority: 5\n"});
    EXPECT_EQ(Matcher(set).match(process, test::NoLineage()), 0U);
    EXPECT_EQ(process.arguments, 0U) << "a policy before decides";
    EXPECT_TRUE(is_matched("{cmdline: \"*\", user: www-data}", process));
    EXPECT_EQ(process.arguments, 1U);
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

TEST(Matcher, KnowsWhatMayComeTrueWithoutAnEvent) {
    const std::pair<const char*, bool> cases[] = {
        {"cmdline: \"*checkpointer*\"", true},
        {"listen: 5432", false},
        {"parent: p9", true},
        {"{comm: nginx, listen: 5432}", false},
        {"{comm: redis, listen: 5432}", false},
        {"{user: postgres, cmdline: \"*x*\"}", false},
        {"comm: redis", false},
        {"any: [{comm: redis}, {listen: 5432}]", false},
        {"any: [{comm: redis}, {comm: redis, listen: 5432}]", false},
        {"{comm: nginx, not: {listen: 80}}", false},
        {"{comm: nginx, not: {user: www-data, listen: 80}}", false},
        {"{comm: nginx, not: {user: www-data}, cmdline: \"*x*\"}", false},
    };
    const test::NoLineage lineage;
    for (const auto& [match, expected] : cases) {
        const auto text = std::string(match);
        const auto set = policies({"match: " + (text.front() == '{' ? text : "{" + text + "}") + "\n"});
        const Matcher matcher(set);
        EXPECT_EQ(matcher.may_want_later(facts("nginx"), lineage, std::nullopt), expected) << match;
        EXPECT_FALSE(matcher.may_want_later(facts("nginx"), lineage, 0)) << "only those before it";
    }
}

TEST(Matcher, KnowsWhichEventsItsPoliciesNeed) {
    const auto plain = policies({"match: {comm: nginx}\n"});
    EXPECT_FALSE(Matcher(plain).has_late_conditions());
    EXPECT_FALSE(Matcher(plain).asks_for_users());
    EXPECT_TRUE(Matcher(plain).ports().empty());
    const auto deep = policies({"match: {comm: nginx, any: [{not: {group: adm}}, {listen: 80}]}\n"});
    EXPECT_FALSE(Matcher(deep).has_late_conditions()) << "listeners are listed";
    EXPECT_TRUE(Matcher(deep).asks_for_users());
    EXPECT_EQ(Matcher(deep).ports(), (Matcher::PortRanges{{80, 80}}));
}

} // namespace
} // namespace affinityd::planner

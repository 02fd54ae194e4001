// SPDX-License-Identifier: Apache-2.0
// Which policies any user can come under at will, and what `check` says of them.
#include "policy/reader.hpp"
#include "policy/set_check.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace {

using namespace affinityd::policy;

PolicySet set_of(const std::vector<std::string>& texts) {
    std::vector<Document> documents;
    for (std::size_t i = 0; i < texts.size(); ++i)
        documents.push_back({"p" + std::to_string(i) + ".yaml", "version: 1\n" + texts[i]});
    auto read = read_policies(documents);
    EXPECT_TRUE(read.ok()) << texts.front();
    return std::move(read.set);
}

bool can_be_forged(const std::string& match) {
    const auto set = set_of({"match: " + match + "\n"});
    return is_forgeable(set.policies.front(), set);
}

TEST(Forgeable, IsWhatAnyUserCanMeet) {
    for (const char* match : {
             "{comm: nginx}",
             "{cmdline: \"*worker*\"}",
             "{comm: nginx, cmdline: \"*worker*\"}",
             "{exe: \"*/bin/postgres\"}",
             "{exe: \"/*/bin/postgres\"}",
             "{exe: /home/joe/bin/server}",
             "{exe: \"/tmp/*\"}",
             "{exe: \"/nginx$/\"}",
             "{cgroup: \"*/nginx.service\"}",
             "{cgroup: \"/user.slice/*\"}",
             "{cgroup: \"/user*\"}",
             "{unit: \"*.service\"}",
             "{unit: user.slice}",
             "{unit: \"session-*\"}",
             "{unit: nginx.service, user-units: true}",
             "{container: web, user-units: true}",
             "{listen: 8080}",
             "{listen: [80, \"443-8443\"]}",
             "{user: \"*\", comm: nginx}",
             "{comm: nginx, not: {user: root}}",
             "{any: [{unit: nginx.service}, {comm: nginx}]}",
         })
        EXPECT_TRUE(can_be_forged(match)) << match;
}

TEST(Forgeable, IsNothingThatOnlyRootGives) {
    for (const char* match : {
             "{comm: nginx, user: www-data}",
             "{group: www-data}",
             "{unit: nginx.service}",
             "{unit: \"postgresql@*.service\"}",
             "{unit: user-1000.slice}",
             "{cgroup: \"/system.slice/*\"}",
             "{exe: /usr/sbin/nginx}",
             "{exe: \"/usr/lib/postgresql/*/bin/postgres\"}",
             "{container: \"*\"}",
             "{pod: \"web-*\", namespace: shop}",
             "{listen: [80, 443]}",
             "{kthread: true, comm: \"k*\"}",
             "{any: [{unit: nginx.service}, {comm: nginx, user: www-data}]}",
         })
        EXPECT_FALSE(can_be_forged(match)) << match;
}

TEST(Forgeable, ADescendantIsAsGoodAsTheAncestorsPolicy) {
    const auto of_name = set_of({"match: {comm: a}\n", "match: {parent: p0}\n"});
    const auto of_user = set_of({"match: {user: a}\n", "match: {parent: p0, comm: b}\n"});
    const auto forged = [](const PolicySet& set) {
        return is_forgeable(*std::ranges::find(set.policies, "p1", &Policy::name), set);
    };
    EXPECT_TRUE(forged(of_name));
    EXPECT_FALSE(forged(of_user));
}

TEST(Forgeable, APolicyWithoutConditionsCannotBeForged) {
    const auto set = set_of({"default: true\n"});
    EXPECT_TRUE(advice(set).empty());
}

struct Case {
    std::string text;
    std::vector<Severity> severities;
};

TEST(Advice, IsANoteAndAWarningWhereOthersWouldSuffer) {
    const std::string by_name = "match: {comm: nginx}\n";
    const std::string by_user = "match: {user: nginx}\n";
    const std::vector<Case> cases{
        {by_name, {Severity::note}},
        {by_name + "affinity: none\n", {}},
        {by_name + "affinity: full\n", {Severity::warning}},
        {by_name + "affinity: irq\n", {Severity::warning}},
        {by_name + "affinity: irq\nnics: eth0\n", {Severity::note}},
        {by_name + "exclusive: true\n", {Severity::warning, Severity::note}},
        {by_user, {}},
        {by_user + "affinity: full\n", {}},
        {by_user + "exclusive: true\n", {Severity::note}},
    };
    for (const auto& [text, severities] : cases) {
        std::vector<Severity> found;
        for (const auto& finding : advice(set_of({text})))
            found.push_back(finding.severity);
        EXPECT_EQ(found, severities) << text;
    }
}

TEST(Advice, ExclusiveIsCalledNoFenceAndFencesAreNamed) {
    const auto found = advice(set_of({"match: {user: nginx}\nexclusive: true\n"}));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_NE(found[0].message.find("no fence"), std::string::npos);
    for (const char* fence : {"means: cpuset", "partitions", "isolcpus="})
        EXPECT_NE(found[0].hint.find(fence), std::string::npos) << fence;
}

TEST(Advice, TellsOfPinningWithoutSteering) {
    const auto is_told = [](const std::string& keys) {
        const auto found = advice(set_of({"match: {unit: nginx.service}\naffinity: full\n" + keys}));
        return std::ranges::any_of(found, [](const Diagnostic& diagnostic) {
            return diagnostic.message.starts_with("'steer: none' with tasks bound") &&
                   diagnostic.severity == Severity::note;
        });
    };
    EXPECT_TRUE(is_told("bind: core\nsteer: none\n"));
    EXPECT_TRUE(is_told("bind: cpu\nsteer: none\n"));
    EXPECT_FALSE(is_told("bind: core\n")) << "whether it can be steered, its listeners will say";
    EXPECT_FALSE(is_told("steer: none\n"));
    EXPECT_FALSE(is_told("bind: llc\nsteer: none\n"));
}

} // namespace

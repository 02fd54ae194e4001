// SPDX-License-Identifier: Apache-2.0
#include "../support/plain_facts.hpp"
#include "planner/check.hpp"
#include "policy/reader.hpp"

#include <gtest/gtest.h>

namespace {

using namespace affinityd;
using policy::Severity;

/// A package, four cores of two threads (0 and 4, 1 and 5, ...), two cache groups; CPU 7 is offline.
topology::Topology machine() {
    topology::Topology t;
    t.possible = t.present = CpuSet::range(0, 7);
    t.online = CpuSet::range(0, 6);
    t.offline = {7};
    t.housekeeping = t.online;
    for (unsigned id = 0; id < 7; ++id) {
        CpuSet smt{id % 4, id % 4 + 4};
        smt &= t.online;
        t.cpus.push_back({.id = id,
                          .package = 0,
                          .die = {},
                          .cluster = {},
                          .core = static_cast<int>(id % 4),
                          .node = 0,
                          .capacity = {},
                          .smt = smt});
    }
    t.packages = {t.online};
    t.cores = {{0, 4}, {1, 5}, {2, 6}, {3}};
    t.caches = {{.level = 3, .type = topology::Cache::Type::unified, .size_bytes = 0, .cpus = {0, 1, 4, 5}},
                {.level = 3, .type = topology::Cache::Type::unified, .size_bytes = 0, .cpus = {2, 3, 6}}};
    t.nodes = {{.id = 0, .cpus = t.online, .memory_bytes = {}, .distance = {10}}};
    return t;
}

std::vector<netdev::Nic> nics() {
    netdev::Nic nic;
    nic.name = "eth0";
    nic.local_cpus = {0, 1};
    return {nic};
}

policy::PolicySet set_of(const std::vector<policy::Document>& documents) {
    auto result = policy::read_policies(documents);
    for (const auto& d : result.diagnostics)
        ADD_FAILURE() << policy::to_string(d, true);
    return std::move(result.set);
}

std::string found(const std::vector<policy::Document>& documents) {
    std::string text;
    for (const auto& d : planner::check_on_machine(set_of(documents), {machine(), nics()}))
        text += policy::to_string(d) + "\n";
    return text;
}

std::string found(const std::string& keys) {
    return found({{"a.yaml", "version: 1\nmatch: {comm: a}\n" + keys + "\n"}});
}

TEST(CheckOnMachine, PoliciesThatFitTheMachineHaveNoFindings) {
    EXPECT_EQ(found("cpus: 0-3"), "");
    EXPECT_EQ(found("cpus: nic:eth0 & !smt"), "");
    EXPECT_EQ(found("near: llc:1"), "");
    EXPECT_EQ(found(""), "");
}

TEST(CheckOnMachine, AFindingPointsAtThePartThatIsWrong) {
    EXPECT_EQ(found("cpus: \"0-3 | 8\""),
              "a.yaml:3:14: error: CPU 8 does not exist on this machine (it has 0-7)\n");
    EXPECT_EQ(found("cpus: 0-3 & llc:0 & 8-9"),
              "a.yaml:3:21: error: CPUs 8-9 do not exist on this machine (it has 0-7)\n");
    EXPECT_EQ(found("cpus: node:0 | llc:2"),
              "a.yaml:3:16: error: there is no last-level-cache group 2 on this machine (it has 0-1)\n");
}

TEST(CheckOnMachine, OfflineCpusAreWarningsNotErrors) {
    EXPECT_EQ(found("cpus: 6-7"), "a.yaml:3:7: warning: CPU 7 is offline now\n");
    EXPECT_EQ(found("cpus: \"7\""),
              "a.yaml:3:8: warning: CPU 7 is offline now\n"
              "a.yaml:3:8: warning: this set holds no online CPU of this machine (online are 0-6)\n");
}

TEST(CheckOnMachine, EmptySetsAreErrorsAndAnEmptyNearIsAWarning) {
    EXPECT_EQ(found("cpus: isolated"),
              "a.yaml:3:7: error: this set holds no online CPU of this machine (no CPU is isolated here)\n");
    EXPECT_EQ(found("cpus: llc:0 & llc:1"),
              "a.yaml:3:7: error: this set holds no online CPU of this machine (online are 0-6)\n");
    EXPECT_EQ(found("near: isolated"), "a.yaml:3:7: warning: 'near' names no online CPU of this machine\n");
}

TEST(CheckOnMachine, InterfacesThatAreNotThereAreWarnings) {
    EXPECT_EQ(found("cpus: nic:eth1"),
              "a.yaml:3:7: warning: no interface here is named 'eth1' (did you mean 'eth0'?)\n");
    EXPECT_EQ(found("affinity: full\nnics: [\"wlan*\"]"),
              "a.yaml:4:7: warning: 'nics': no interface here is named 'wlan*' (there are eth0)\n");
    EXPECT_EQ(found("affinity: full\nnics: \"eth*\"\ncpus: nic & 2-3"),
              "a.yaml:5:7: error: this set holds no online CPU of this machine (online are 0-6)\n");
}

TEST(CheckOnMachine, WhatAThreadRuleTakesFromItsPolicyIsReportedOnce) {
    EXPECT_EQ(found("cpus: \"9\"\nthreads: [{name: a, bind: cpu}, {name: b, cpus: core:4}]"),
              "a.yaml:3:8: error: CPU 9 does not exist on this machine (it has 0-7)\n"
              "a.yaml:4:49: error: there is no core 4 on this machine (it has 0-3)\n");
}

TEST(CheckOnMachine, TwoClaimsToOneCpuAreAnError) {
    const policy::Document first{"a.yaml", "version: 1\nmatch: {comm: a}\ncpus: 1-2\nexclusive: true\n"};
    EXPECT_EQ(found({first, {"b.yaml", "version: 1\nmatch: {comm: b}\ncpus: 2-3\nexclusive: true\n"}}),
              "b.yaml:3:7: error: CPU 2 cannot be exclusive: 'a' claims it too\n");
    EXPECT_EQ(found({first, {"b.yaml", "version: 1\nmatch: {comm: b}\ncpus: 1-2\n"}}),
              "b.yaml:3:7: error: no CPU is left: 'a' claims CPUs 1-2 with 'exclusive' (a.yaml:3:7) (name "
              "others, too, or leave out 'exclusive' there)\n");
    EXPECT_EQ(found("cpus: all\nexclusive: true"),
              "a.yaml:3:7: error: 'exclusive' on every online CPU leaves none to all other programs\n");
}

TEST(CheckOnMachine, CpusThatAnotherPolicyClaimsAreTold) {
    const policy::Document claim{"m.yaml", "version: 1\nmatch: {comm: a}\ncpus: 1-2\nexclusive: true\n"};
    for (const char* name : {"a.yaml", "z.yaml"}) // the claim is met first, wherever it stands
        EXPECT_EQ(found({claim, {name, "version: 1\nmatch: {comm: b}\ncpus: 2-3\n"}}),
                  name + std::string(":3:7: warning: not all of these CPUs are used: 'm' claims CPU 2 with "
                                     "'exclusive' (m.yaml:3:7) (its tasks get CPU 3)\n"));
    EXPECT_EQ(
        found({claim,
               {"a.yaml", "version: 1\nmatch: {comm: b}\ncpus: 3-4\n"
                          "threads: [{name: x, cpus: 1-2}, {name: y, cpus: 2-4}]\n"}}),
        "a.yaml:4:27: warning: no CPU is left to this thread rule: 'm' claims CPUs 1-2 with 'exclusive' "
        "(m.yaml:3:7) (its threads get the CPUs of the policy)\n"
        "a.yaml:4:49: warning: not all of these CPUs are used: 'm' claims CPU 2 with 'exclusive' "
        "(m.yaml:3:7) (its tasks get CPUs 3-4)\n");
    EXPECT_EQ(found({claim, {"a.yaml", "version: 1\nmatch: {comm: b}\n"}}), "")
        << "it names none of them, and gets what is left";
}

TEST(CheckOnMachine, APolicyThatRestrictsNothingGetsANote) {
    EXPECT_EQ(found("cpus: all\nbind: set"),
              "a.yaml:1:1: note: it restricts nothing on this machine: each of "
              "its places has all online CPUs (0-6)\n");
    EXPECT_EQ(found("cpus: all\nbind: set\nthreads: [{name: x, cpus: \"3\"}]"), "");
}

TEST(CheckMatches, PoliciesThatMatchNoProcessGetANote) {
    const auto set = set_of({{"a.yaml", "version: 1\nmatch: {comm: nginx}\n"},
                             {"b.yaml", "version: 1\nmatch: {comm: redis}\n"},
                             {"c.yaml", "version: 1\nmatch: {parent: a}\n"},
                             {"d.yaml", "version: 1\naffinity: irq\nnics: eth0\n"}});
    inventory::PlainFacts child;
    child.task = {200, 1};
    child.ppid = 100;
    child.comm_text = "sh";
    inventory::PlainFacts nginx;
    nginx.task = {100, 1};
    nginx.comm_text = "nginx";
    const auto matches = planner::check_matches(set, {&child, &nginx});
    const auto& notes = matches.notes;
    EXPECT_EQ(matches.processes, (std::vector<std::size_t>{1, 0, 1, 0}));
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_EQ(policy::to_string(notes[0]),
              "b.yaml:1:1: note: no process is matched by this policy now (affinityctl explain PID names the "
              "condition that a process does not meet)");
    EXPECT_EQ(planner::check_matches(set, {}).notes.size(), 3U);
    const auto claim = set_of({{"a.yaml", "version: 1\nmatch: {comm: a}\ncpus: 1\nexclusive: always\n"}});
    EXPECT_EQ(
        policy::to_string(planner::check_matches(claim, {}).notes.at(0)),
        "a.yaml:1:1: note: no process is matched by this policy now, and all others are kept off its "
        "CPUs all the same (exclusive: always) (affinityctl explain PID names the condition that a process "
        "does not meet)");
}

inventory::PlainFacts nginx_of_root() {
    inventory::PlainFacts nginx;
    nginx.task = {100, 1};
    nginx.comm_text = "nginx";
    nginx.user_text = "root";
    nginx.cgroup_text = "/system.slice/nginx.service";
    return nginx;
}

std::string hint_for(const std::string& match) {
    const auto nginx = nginx_of_root();
    const auto set = set_of({{"a.yaml", "version: 1\nmatch: " + match + "\n"}});
    const auto found = planner::check_matches(set, {&nginx}, {{"redis.service"}, {"www-data"}});
    return found.notes.empty() ? "none" : found.notes[0].hint;
}

TEST(CheckMatches, APolicyThatAnotherTakesEverythingFromIsTold) {
    const auto nginx = nginx_of_root();
    const auto set = set_of({{"all.yaml", "version: 1\nmatch: {unit: nginx.service, user: root}\n"},
                             {"name.yaml", "version: 1\nmatch: {comm: nginx}\n"}});
    const auto found = planner::check_matches(set, {&nginx});
    ASSERT_EQ(found.notes.size(), 1U);
    EXPECT_EQ(found.notes[0].at.file, "name.yaml");
    EXPECT_EQ(found.notes[0].hint, "'all' takes 1 process that it would match: give it a higher priority, or "
                                   "another match");
}

TEST(CheckMatches, MisspeltUnitsAndUsersAreHintedAt) {
    EXPECT_EQ(hint_for("{unit: ngnix.service}"),
              "there is no unit 'ngnix.service' here: did you mean 'nginx.service'?");
    EXPECT_EQ(hint_for("{unit: reddis.service}"),
              "there is no unit 'reddis.service' here: did you mean 'redis.service'?");
    EXPECT_EQ(hint_for("{comm: x, any: [{user: rot}, {comm: y}]}"),
              "there is no user 'rot' here: did you mean 'root'?");
    EXPECT_EQ(hint_for("{user: ww-data}"), "there is no user 'ww-data' here: did you mean 'www-data'?");
    const std::string plain = "affinityctl explain PID names the condition that a process does not meet";
    EXPECT_EQ(hint_for("{unit: batis.service}"), plain) << "\".service\" makes no likeness";
    EXPECT_EQ(hint_for("{unit: redis.service}"), plain) << "it is there, and does not run";
    EXPECT_EQ(hint_for("{user: completely-different}"), plain);
    EXPECT_EQ(hint_for("{unit: \"ngnix*\"}"), plain) << "a pattern is no name";
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
#include "status/json.hpp"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace affinityd::status {
namespace {

using nlohmann::json;

constexpr uid_t alice = 1000, bob = 1001;

/// Adds a process of one thread.
void add_process(AnswerText& text, int pid, uid_t owner) {
    text.begin_process({.pid = pid, .owner = owner, .comm = "secret", .policy = "p"});
    text.add(ThreadStatus{.tid = pid, .comm = "secret"}, owner);
    text.end_process();
}

planner::Action change(int tid) {
    return {planner::TaskMask{{tid, 1}, tid, "secret"},       CpuSet{0}, CpuSet{1}, "p",
            planner::Reason(planner::KeptOff{{}, {"other"}}), false};
}

TEST(AnswerText, WithoutAnythingItIsAnEmptyObject) {
    EXPECT_EQ(json::parse(AnswerText().finish().full()), json::object());
    AnswerText text;
    text.begin_list("a");
    EXPECT_EQ(json::parse(text.finish().full()), json({{"a", json::array()}}));
}

TEST(AnswerText, ListsAndMembersInAnyOrderAreOneObject) {
    AnswerText text;
    text.add_member("first", "1");
    text.begin_list("empty");
    text.begin_list("processes");
    add_process(text, 1, alice);
    add_process(text, 2, bob);
    text.add_member("last", alice, "\"full\"", "\"\"");
    const auto answer = text.finish();
    const auto value = json::parse(answer.full());
    EXPECT_EQ(value["first"], 1);
    EXPECT_EQ(value["empty"], json::array());
    EXPECT_EQ(value["processes"].size(), 2U);
    EXPECT_EQ(value["last"], "full");
    EXPECT_EQ(json::parse(answer.seen_by(bob))["last"], "");
}

TEST(AnswerText, AProcessIsShownWithNamesToItsOwnerAndToRootOnly) {
    AnswerText text;
    text.begin_list("processes");
    add_process(text, 1, alice);
    add_process(text, 2, bob);
    add_process(text, 3, OwnedText::no_owner);
    const auto answer = text.finish();
    const auto comms = [](const std::string& seen) {
        std::vector<std::string> list;
        const auto value = json::parse(seen);
        for (const auto& one : value["processes"]) {
            list.push_back(one["comm"]);
            EXPECT_EQ(one["comm"], one["threads"][0]["comm"]);
        }
        return list;
    };
    using Names = std::vector<std::string>;
    EXPECT_EQ(comms(answer.full()), (Names{"secret", "secret", "secret"}));
    EXPECT_EQ(comms(answer.seen_by(alice)), (Names{"secret", "", ""}));
    EXPECT_EQ(comms(answer.seen_by(bob)), (Names{"", "secret", ""}));
}

TEST(AnswerText, APlannedChangeOfATaskIsItsOwnersAndThatOfAnInterruptEverybodys) {
    AnswerText text;
    text.begin_list("actions");
    text.add(change(1), alice);
    text.add(planner::Action{planner::IrqMask{"d", "eth0-rx-0", 0, 5}, CpuSet{0}, CpuSet{1}, "p", "RPS off",
                             false},
             OwnedText::no_owner);
    const auto answer = finish_plan(std::move(text), {{"p", "eth9", "no such interface"}}, nullptr);
    const auto seen = json::parse(answer.seen_by(bob));
    EXPECT_EQ(seen["actions"][0]["comm"], "");
    EXPECT_EQ(seen["actions"][0]["to"], "1");
    EXPECT_EQ(seen["actions"][1]["label"], "eth0-rx-0");
    EXPECT_EQ(json::parse(answer.seen_by(alice))["actions"][0]["comm"], "secret");
    EXPECT_EQ(seen["problems"][0]["message"], "no such interface");
    EXPECT_TRUE(seen["balance"].is_null());
}

TEST(AnswerText, WhatAnExplanationFoundInAProcessIsItsOwners) {
    ProcessExplanation explained{.pid = 7, .owner = alice, .comm = "secret", .policy = "p"};
    planner::Verdict verdict;
    verdict.field = "exe";
    verdict.wanted = "/bin/x";
    verdict.found = "/home/alice/secret";
    explained.considered.push_back({"q", {"/etc/q.yaml", 3, 1}, verdict});
    AnswerText text;
    text.begin_list("threads");
    ThreadExplanation thread;
    thread.thread = {.id = {7, 1}, .comm = "secret", .flags = 0, .allowed = CpuSet{0}};
    thread.decided_by = policy::Position{"/etc/p.yaml", 12, 5};
    text.add(thread, explained);
    const auto answer = finish(std::move(text), explained);
    for (const uid_t user : {alice, bob}) {
        const auto seen = json::parse(answer.seen_by(user));
        const bool is_owner = user == alice;
        EXPECT_EQ(seen["comm"], is_owner ? "secret" : "");
        EXPECT_EQ(seen["considered"][0]["found"], is_owner ? "/home/alice/secret" : "");
        EXPECT_EQ(seen["considered"][0]["wanted"], "/bin/x") << "policies are no secret";
        EXPECT_EQ(seen["considered"][0]["at"], "/etc/q.yaml:3");
        EXPECT_EQ(seen["threads"][0]["comm"], is_owner ? "secret" : "");
        EXPECT_EQ(seen["threads"][0]["decided_by"], "/etc/p.yaml:12");
        EXPECT_EQ(seen["policy"], "p");
    }
}

TEST(AnswerText, AnAnswerAboutQueuesIsForEverybody) {
    const auto text = answer("eth0", {});
    EXPECT_EQ(json::parse(text.seen_by(bob)), json({{"subject", "eth0"}, {"queues", json::array()}}));
}

} // namespace
} // namespace affinityd::status

// SPDX-License-Identifier: Apache-2.0
// The words in which a command says what it did, as far as tests/blackbox/answers_test.py does not hold them.
#include "status/changes.hpp"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace affinityd::status {
namespace {

using nlohmann::json;

TEST(SubjectCounts, NameOneAndMany) {
    EXPECT_EQ(to_string(SubjectCounts{}), "");
    EXPECT_EQ(to_string(SubjectCounts{1, 1, 1, 1}), "1 thread, 1 interrupt, 1 steering setting, 1 unit");
    EXPECT_EQ(to_string(SubjectCounts{3, 2, 4, 2}), "3 threads, 2 interrupts, 4 steering settings, 2 units");
    EXPECT_EQ(to_string(SubjectCounts{0, 2, 0, 0}), "2 interrupts");
}

TEST(SubjectCounts, EachKindOfSubjectIsCounted) {
    SubjectCounts counts;
    counts.add(machine::TaskMask{});
    counts.add(machine::IrqMask{});
    counts.add(machine::SteeringMask{});
    counts.add(machine::FlowTable{});
    counts.add(machine::UnitCpuset{});
    EXPECT_EQ(counts, (SubjectCounts{1, 1, 2, 1}));
    EXPECT_EQ(counts.sum(), 5U);
}

TEST(PolicyChanges, SayWhatWasPutBackAndWhatCouldNot) {
    PolicyChanges changes;
    changes.put_back = {3, 2, 0, 0};
    EXPECT_EQ(to_string(changes), "3 threads, 2 interrupts put back");
    changes.not_put_back = 1;
    changes.reason = "Operation not permitted";
    EXPECT_EQ(to_string(changes), "3 threads, 2 interrupts put back; 1 could not: Operation not permitted; "
                                  "affinityctl status --failed");
    changes.put_back = {};
    changes.left = 1;
    EXPECT_EQ(to_string(changes),
              "1 could not be put back: Operation not permitted; 1 left as another program "
              "has set it; affinityctl status --failed");
}

TEST(Changes, AreJsonWithAllCounts) {
    Changes changes;
    auto& nginx = changes.policies["ngin\xff\x1b[x"];
    nginx.placed = {3, 2, 1, 0};
    nginx.not_put_back = 1;
    nginx.reason = "busy";
    const auto text = to_text(changes);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    const auto value = json::parse(text);
    EXPECT_EQ(value["ok"], false);
    EXPECT_NE(value["message"].get<std::string>().find("3 threads, 2 interrupts, 1 steering setting placed"),
              std::string::npos);
    ASSERT_EQ(value["policies"].size(), 1U);
    const auto& policy = value["policies"][0];
    EXPECT_EQ(policy["placed"], (json{{"threads", 3}, {"interrupts", 2}, {"steering", 1}, {"units", 0}}));
    EXPECT_EQ(policy["not_put_back"], 1);
    EXPECT_EQ(policy["refused"], 0);
    EXPECT_EQ(policy["reason"], "busy");
    const auto begun = json::parse(message_text("a pass has begun"));
    EXPECT_EQ(begun, (json{{"ok", true}, {"message", "a pass has begun"}, {"policies", json::array()}}));
}

} // namespace
} // namespace affinityd::status

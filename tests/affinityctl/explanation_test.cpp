// SPDX-License-Identifier: Apache-2.0
// The text that `affinityctl explain` prints of a process.
#include "affinityctl/verbs/verb.hpp"

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

using nlohmann::json;

json answer() {
    return {{"pid", 10},
            {"comm", "server"},
            {"policy", "web"},
            {"released", false},
            {"considered",
             {{{"policy", "db"},
               {"at", "/etc/db.yaml:3"},
               {"matched", false},
               {"field", "comm"},
               {"found", "server"},
               {"wanted", "postgres"}},
              {{"policy", "web"}, {"at", "/etc/web.yaml:2"}, {"matched", true}}}},
            {"threads",
             {{{"tid", 11},
               {"comm", "io"},
               {"present", "0-3"},
               {"reason", "left alone: a thread rule says leave: true"},
               {"decided_by", "/etc/web.yaml:7"}}}}};
}

std::string explanation_text(const json& value) { return to_text(explanation(value), Page{}); }

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Explanation, EachPolicyThatWasConsideredIsNamedByFileAndLine) {
    const auto text = explanation_text(answer());
    EXPECT_TRUE(says(text, "  policy web: matches (/etc/web.yaml:2)\n")) << text;
    EXPECT_TRUE(says(text, "  policy db: no, comm is \"server\" and not postgres (/etc/db.yaml:3)\n"))
        << text;
}

TEST(Explanation, AThreadThatIsLeftAloneSaysWhyAndWhichLineDecided) {
    const auto text = explanation_text(answer());
    EXPECT_TRUE(says(text, "left alone: a thread rule says leave: true (/etc/web.yaml:7)")) << text;
}

TEST(Explanation, ListenersOfIPv4AndIPv6OnOnePortAreOneLine) {
    auto value = answer();
    const auto listener = [](int port, int thread, int cpu) -> json {
        return {{"port", port}, {"thread", thread}, {"cpu", cpu}};
    };
    value["listeners"] = {listener(80, 10, 3), listener(80, 10, 3), listener(443, 10, 3)};
    const auto text = explanation_text(value);
    EXPECT_TRUE(says(text, "  2 listeners of port 80 for thread 10: connections that arrive on CPU 3\n"))
        << text;
    EXPECT_TRUE(says(text, "  1 listener of port 443 for thread 10: connections that arrive on CPU 3\n"))
        << text;
}

TEST(Explanation, AThreadThatNoLineDecidedHasNoPlaceInItsText) {
    auto value = answer();
    value["threads"][0].erase("decided_by");
    const auto text = explanation_text(value);
    EXPECT_TRUE(says(text, "leave: true\n")) << text;
}

TEST(Explanation, ASharedLineSaysWithWhomAndWhoDecides) {
    json queue = {{"nic", "lan1"},    {"kind", "irq"},
                  {"irq", 20},        {"label", "lan1"},
                  {"present", "2"},   {"wanted", "3"},
                  {"original", ""},   {"policy", "b"},
                  {"reason", "lane"}, {"shared_with", "lan0 of policy a"}};
    EXPECT_TRUE(says(explanation_text({{"queues", {queue}}}), "lane (shared with lan0 of policy a)"));
    queue["note"] = "one line with lan0 of policy a, which decides";
    EXPECT_TRUE(
        says(explanation_text({{"queues", {queue}}}), "which decides (shared with lan0 of policy a)"));
}

TEST(Explanation, AChangeThatIsDueStandsInPlaceOfAReason) {
    auto value = answer();
    value["threads"][0].erase("reason");
    value["threads"][0]["would_change"] = "no policy wants it any more: its own mask back";
    EXPECT_TRUE(says(explanation_text(value), "its own mask back (/etc/web.yaml:7)"));
}

TEST(Explanation, ControlCharactersOfNamesAreNotPrinted) {
    auto value = answer();
    value["considered"][1]["at"] = "/etc/\x1b[2J:2";
    value["threads"][0]["decided_by"] = "/etc/\x1b[2J:7";
    EXPECT_FALSE(says(explanation_text(value), "\x1b")) << "not even of a file's";
}

} // namespace
} // namespace affinityctl

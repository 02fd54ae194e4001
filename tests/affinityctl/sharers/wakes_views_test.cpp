// SPDX-License-Identifier: Apache-2.0
// What `sharers` prints and draws.
#include "affinityctl/present/page.hpp"
#include "affinityctl/views/sharers.hpp"
#include "machine/machines.hpp"
#include "seen_wakes.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

using affinityd::machine::test::two_sockets;
using test::SeenWakes;

SharersReport report_of(const Wakes& wakes) {
    SharersReport report{.process = {4711, "pa\033[31mirs", ""}, .wakes = wakes, .graph = graph_of(wakes)};
    report.suggestion = suggestion_for(report.process, report.wakes, report.graph, two_sockets());
    return report;
}

SeenWakes two_pairs() {
    SeenWakes seen;
    seen.thread(1, "main").thread(2, "a\u202e1").thread(3, "a<2>").thread(4, "b1").thread(5, "b2", -1);
    return seen.pair(2, 3, 50000).pair(4, 5, 300).pair(1, 4, 2);
}

std::size_t widest_line(const std::string& text) {
    std::size_t most = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        most = std::max(most, columns_of(text.substr(at, end - at)));
        at = end + 1;
    }
    return most;
}

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++count;
    return count;
}

TEST(SharersText, HasPairsGroupsAndThePolicy) {
    const auto text = sharers_text(report_of(two_pairs().wakes), Page{.width = 80});
    EXPECT_NE(text.find("10.0 s of pa\\x1b[31mirs (process 4711): 100,604 wake-ups among 5 threads"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("5,000/s"), std::string::npos) << text;
    EXPECT_NE(text.find("a\\u202e1 (2)"), std::string::npos) << text;
    EXPECT_NE(text.find("b2 (5, ended)"), std::string::npos) << text;
    EXPECT_NE(text.find("1 pair of threads woke each other too seldom"), std::string::npos) << text;
    EXPECT_NE(text.find("As a policy\n# affinityctl sharers"), std::string::npos) << text;
    EXPECT_EQ(text.find('\033'), std::string::npos);
    EXPECT_LE(widest_line(text.substr(0, text.find("As a policy"))), 80U) << text;
}

TEST(SharersText, SaysThatThereAreNone) {
    SeenWakes seen;
    seen.thread(1, "main").thread(2, "w").pair(1, 2, 1);
    const auto text = sharers_text(report_of(seen.wakes), Page{});
    EXPECT_NE(text.find("No two of its threads"), std::string::npos) << text;
    EXPECT_EQ(text.find("GROUP"), std::string::npos) << text;
    EXPECT_EQ(text.find("policy"), std::string::npos) << text;
}

TEST(SharersText, OfThousandsOfPairsIsAPage) {
    SeenWakes seen;
    for (int pair = 0; pair < 2000; ++pair)
        seen.thread(2 * pair + 1, "p").thread(2 * pair + 2, "p").pair(2 * pair + 1, 2 * pair + 2, 100);
    auto report = report_of(seen.wakes);
    const auto text = sharers_text(report, Page{.width = 80});
    EXPECT_LE(std::count(text.begin(), text.begin() + static_cast<long>(text.find("As a policy")), '\n'), 60)
        << text;
    EXPECT_NE(text.find("and 1,980 more pairs"), std::string::npos) << text;
}

TEST(SharersText, SaysWhatIsMissing) {
    auto report = report_of(two_pairs().wakes);
    report.wakes.lost = 7;
    report.wakes.unnamed = 1;
    report.has_ended = true;
    report.suggestion.void_level = "llc";
    const auto remarks = remarks_of(report);
    const auto has = [&](const std::string& part) {
        return std::ranges::any_of(remarks,
                                   [&](const auto& one) { return one.find(part) != std::string::npos; });
    };
    EXPECT_TRUE(has("7 wake-ups found no room"));
    EXPECT_TRUE(has("more threads than the table"));
    EXPECT_TRUE(has("has ended"));
    EXPECT_TRUE(has("NUMA hinting is off"));
    EXPECT_TRUE(has("the rules change little"));
    report.hinting = NumaHinting::hidden;
    EXPECT_EQ(sharers_text(report, Page{}).find("NUMA hinting"), std::string::npos) << "it has ended";
    report.has_ended = false;
    EXPECT_NE(sharers_text(report, Page{}).find("does not tell its groups"), std::string::npos);
    report.hinting = NumaHinting::has_told;
    EXPECT_NE(sharers_text(report, Page{}).find("no two threads"), std::string::npos);
    for (auto& [id, thread] : report.wakes.threads)
        thread.pages_group = 99;
    EXPECT_NE(sharers_text(report, Page{}).find("5 threads (group 99)"), std::string::npos);
}

bool has_remark(const SharersReport& report, const std::string& part) {
    const auto remarks = remarks_of(report);
    return std::ranges::any_of(remarks, [&](const auto& one) { return one.find(part) != std::string::npos; });
}

TEST(SharersText, SaysOfWhichLevelThereIsOneGroupOnly) {
    auto report = report_of(two_pairs().wakes);
    report.suggestion.void_level = "node";
    EXPECT_TRUE(has_remark(report, "the rules change little: all its CPUs are of one node."))
        << "not of one cache";
    report.suggestion.is_together = true;
    report.suggestion.void_level = "llc";
    EXPECT_TRUE(has_remark(report, "the policy changes little: all its CPUs share one cache group."));
}

TEST(SharersText, SaysThatAnotherProgramWasExecuted) {
    auto report = report_of(two_pairs().wakes);
    EXPECT_FALSE(has_remark(report, "when the watch began"));
    report.process = {4711, "python3", "", "ex.sh"};
    EXPECT_TRUE(has_remark(report, "The process was called ex.sh when the watch began and is called python3 "
                                   "now: what it did before counts, too"));
    report.process.former_unit = "old.service";
    EXPECT_TRUE(
        has_remark(report, "and it was in old.service when the watch began and is in no service now"));
    report.process.former_name.reset();
    EXPECT_TRUE(has_remark(report, "The process was in old.service when"));
}

TEST(SharersText, SaysWhyThereIsNoPolicy) {
    SeenWakes namesakes;
    namesakes.thread(1, "w").thread(2, "w").thread(3, "w").thread(4, "w").thread(5, "w").pair(2, 4, 1000);
    EXPECT_TRUE(has_remark(report_of(namesakes.wakes), "For 1 group there is no rule"));
    SeenWakes all;
    all.thread(1, "").thread(2, "").pair(1, 2, 1000);
    EXPECT_TRUE(report_of(all.wakes).suggestion.is_together);
    EXPECT_FALSE(has_remark(report_of(all.wakes), "there is no rule"));
    EXPECT_FALSE(has_remark(report_of(all.wakes), "Rules with index")) << "it has no rules";
}

TEST(SharersText, SaysOfSamplesThatTheyAreSome) {
    auto report = report_of(two_pairs().wakes);
    EXPECT_FALSE(has_remark(report, "by samples"));
    report.wakes.heaviest = 64;
    EXPECT_TRUE(has_remark(report, "stands for up to 64, and its pair counts as one that is too seldom"));
    EXPECT_TRUE(
        has_remark(report, "1 pair of threads woke each other too seldom, or too small a part of the time"));
}

TEST(SharersText, Rates) {
    EXPECT_EQ(rate_text(0), "0.0/s");
    EXPECT_EQ(rate_text(0.01), "<0.1/s");
    EXPECT_EQ(rate_text(2.54), "2.5/s");
    EXPECT_EQ(rate_text(12345.4), "12,345/s");
}

TEST(SharersJson, HasAllThatWasCounted) {
    const auto json = sharers_json(report_of(two_pairs().wakes));
    EXPECT_EQ(json["threads"].size(), 5U);
    EXPECT_EQ(json["pairs"].size(), 3U);
    EXPECT_EQ(json["pairs"][0]["one_wakes"], 50000);
    EXPECT_EQ(json["pairs"][0]["group"], 1);
    EXPECT_TRUE(json["pairs"][0]["sharers"].get<bool>());
    EXPECT_FALSE(json["pairs"][2]["sharers"].get<bool>());
    EXPECT_TRUE(json["pairs"][2]["group"].is_null());
    EXPECT_EQ(json["groups"][0]["threads"], (nlohmann::json{2, 3}));
    EXPECT_TRUE(json["groups"][0]["has_rule"].get<bool>());
    EXPECT_TRUE(json["threads"][4]["index"].is_null());
    EXPECT_TRUE(json["policy"].is_string());
}

TEST(SharersPicture, HasACellForEachPairAndFramesGroups) {
    const auto svg = sharers_svg(report_of(two_pairs().wakes));
    EXPECT_TRUE(svg.starts_with("<svg"));
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
    EXPECT_EQ(count_of(svg, "<rect x="), 25U);
    EXPECT_EQ(count_of(svg, "<line "), 8U);
    EXPECT_EQ(svg.find("\u202e"), std::string::npos);
    EXPECT_NE(svg.find("a&lt;2&gt; (3)"), std::string::npos) << svg;
    SeenWakes many;
    for (int pair = 0; pair < 500; ++pair)
        many.pair(2 * pair + 1, 2 * pair + 2, 1000);
    const auto large = sharers_svg(report_of(many.wakes));
    EXPECT_EQ(count_of(large, "<rect x="), 64U * 64);
    EXPECT_NE(large.find("936 more threads"), std::string::npos);
    EXPECT_TRUE(sharers_svg(report_of(Wakes{})).ends_with("</svg>\n"));
}

} // namespace
} // namespace affinityctl

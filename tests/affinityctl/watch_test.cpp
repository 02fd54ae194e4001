// SPDX-License-Identifier: Apache-2.0
// The screen of `affinityctl watch`, without a terminal.
#include "affinityctl/client/task_rows.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <unistd.h>

namespace affinityctl {
namespace {

nlohmann::json row(int tid, const std::string& name, double share, int cpu = 0) {
    return {{"pid", tid},
            {"tid", tid},
            {"comm", name},
            {"policy", "p"},
            {"state", "in place"},
            {"cpu", cpu},
            {"mask", "0"},
            {"wanted", "1"},
            {"astray", true},
            {"share", share},
            {"migrations_per_second", nullptr}};
}

std::vector<int> tids(const nlohmann::json& rows) {
    std::vector<int> result;
    for (const auto& each : rows)
        result.push_back(each["tid"].get<int>());
    return result;
}

TEST(Watch, RowsAreSortedAndEqualOnesKeepTheirPlace) {
    nlohmann::json rows{row(3, "b", 0.1, 1), row(1, "c", 0.9, 0), row(2, "a", 0.1, 1)};
    sort_rows(rows, "share", false);
    EXPECT_EQ(tids(rows), (std::vector{1, 2, 3}));
    sort_rows(rows, "share", true);
    EXPECT_EQ(tids(rows), (std::vector{2, 3, 1}));
    sort_rows(rows, "name", false);
    EXPECT_EQ(tids(rows), (std::vector{2, 3, 1}));
    sort_rows(rows, "cpu", true);
    EXPECT_EQ(tids(rows), (std::vector{2, 3, 1}));
}

std::string line_of(const nlohmann::json& row) {
    Document document;
    document.add(Document::Table{watch_fields, nlohmann::json::array({row})});
    const auto text = to_text(document, Page{});
    return text.substr(text.find('\n') + 1);
}

TEST(Watch, ARowSaysThatItIsAstrayAndEscapesControlBytes) {
    EXPECT_EQ(line_of(row(7, "\033[31mred", 0.25, 0)),
              "7    7    \\x1b[31mred  p       0!      0     25.0%  -       in place\n");
    using affinityd::CpuSet;
    EXPECT_TRUE(is_astray(0, CpuSet{0}, CpuSet{1}, 0.25)) << "it runs where it should not";
    EXPECT_FALSE(is_astray(1, CpuSet{1}, CpuSet{1}, 0.25));
    EXPECT_FALSE(is_astray(0, CpuSet{1}, CpuSet{1}, 0)) << "it sleeps since its mask was changed";
    EXPECT_FALSE(is_astray(0, CpuSet{1}, CpuSet{1}, 0.25)) << "it ran before, and sleeps since";
    EXPECT_FALSE(is_astray(0, CpuSet{0}, CpuSet{}, 0.25)) << "its policy leaves it alone";
}

TEST(Watch, SamplerCountsFromTheLastSample) {
    const auto root = affinityd::host::Root::open("/");
    ASSERT_TRUE(root);
    TaskSampler sampler(*root);
    const auto thread = [](int tid) {
        return nlohmann::json{{"tid", tid}, {"comm", "me"}, {"state", "in place"}, {"wanted", "0-1023"}};
    };
    const nlohmann::json status{
        {"processes",
         {{{"pid", ::getpid()}, {"policy", "p"}, {"threads", {thread(::getpid()), thread(0x7ffffffe)}}}}}};
    auto rows = sampler.sample(status, "");
    ASSERT_EQ(rows.size(), 1U) << "the thread that is not there is left out";
    EXPECT_TRUE(rows[0]["share"].is_null());
    EXPECT_NE(rows[0]["mask"], "");
    EXPECT_EQ(rows[0]["astray"], false);
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
         std::chrono::steady_clock::now() < end;) {
    }
    rows = sampler.sample(status, "p");
    ASSERT_EQ(rows.size(), 1U);
    ASSERT_TRUE(rows[0]["share"].is_number());
    EXPECT_GT(rows[0]["share"].get<double>(), 0);
    EXPECT_LE(rows[0]["share"].get<double>(), 1.2);
    EXPECT_TRUE(sampler.sample(status, "another").empty());
}

} // namespace
} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
// What `affinityctl watch` shows, without a terminal.
#include "affinityctl/client/task_rows.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <unistd.h>

namespace affinityctl {
namespace {

using Key = WatchView::Key;

TaskRow row(int tid, const std::string& name, double share, int cpu = 0) {
    return {.pid = tid,
            .tid = tid,
            .comm = name,
            .policy = "p",
            .state = "in place",
            .cpu = cpu,
            .mask = affinityd::CpuSet{1},
            .wanted = affinityd::CpuSet{1},
            .share = share,
            .migrations = {}};
}

std::vector<int> tids(const std::vector<TaskRow>& rows) {
    std::vector<int> result;
    std::ranges::transform(rows, std::back_inserter(result), &TaskRow::tid);
    return result;
}

TEST(Watch, RowsAreSortedAndEqualOnesKeepTheirPlace) {
    std::vector<TaskRow> rows{row(3, "b", 0.1, 1), row(1, "c", 0.9, 0), row(2, "a", 0.1, 1)};
    sort_rows(rows, RowOrder::share, false);
    EXPECT_EQ(tids(rows), (std::vector{1, 2, 3}));
    sort_rows(rows, RowOrder::share, true);
    EXPECT_EQ(tids(rows), (std::vector{2, 3, 1}));
    sort_rows(rows, RowOrder::name, false);
    EXPECT_EQ(tids(rows), (std::vector{2, 3, 1}));
    sort_rows(rows, RowOrder::cpu, true);
    EXPECT_EQ(tids(rows), (std::vector{2, 3, 1}));
}

TEST(Watch, ScrollingStopsAtBothEnds) {
    WatchView view;
    EXPECT_EQ(view.top(100, 10), 0U);
    view.press(Key::up, 100, 10);
    EXPECT_EQ(view.top(100, 10), 0U);
    view.press(Key::page_down, 100, 10);
    view.press(Key::down, 100, 10);
    EXPECT_EQ(view.top(100, 10), 11U);
    view.press(Key::end, 100, 10);
    EXPECT_EQ(view.top(100, 10), 90U);
    EXPECT_EQ(view.top(5, 10), 0U) << "most of the threads have gone";
    view.press(Key::page_up, 5, 10);
    EXPECT_EQ(view.top(100, 10), 0U);
    EXPECT_EQ(view.top(100, 0), 0U) << "a terminal of two lines";
}

TEST(Watch, Keys) {
    WatchView view;
    EXPECT_EQ(view.order(), RowOrder::share);
    for (std::size_t i = 0; i < std::size(row_orders); ++i)
        EXPECT_TRUE(view.press(Key::next_order, 1, 1));
    EXPECT_EQ(view.order(), RowOrder::share);
    view.press(Key::reverse, 1, 1);
    EXPECT_TRUE(view.is_reversed());
    view.press(Key::pause, 1, 1);
    EXPECT_TRUE(view.is_paused());
    EXPECT_FALSE(view.press(Key::quit, 1, 1));
}

std::string line_of(const TaskRow& row) {
    Document document;
    document.add(Document::Table{watch_fields, watch_json({row})});
    const auto text = to_text(document, Page{});
    return text.substr(text.find('\n') + 1);
}

TEST(Watch, ARowSaysThatItIsAstrayAndEscapesControlBytes) {
    auto astray = row(7, "\033[31mred", 0.25, 0);
    astray.mask = affinityd::CpuSet{0};
    EXPECT_EQ(line_of(astray), "7    7    \\x1b[31mred  p       0!      0     25.0%  -       in place\n")
        << "it runs where it should not";
    EXPECT_FALSE(row(7, "x", 0.25, 1).is_astray());
    EXPECT_FALSE(row(7, "x", 0, 0).is_astray()) << "it sleeps since its mask was changed";
    EXPECT_FALSE(row(7, "x", 0.25, 0).is_astray()) << "it ran before, and sleeps since";
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
    EXPECT_FALSE(rows[0].share);
    EXPECT_FALSE(rows[0].mask.empty());
    EXPECT_FALSE(rows[0].is_astray());
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
         std::chrono::steady_clock::now() < end;) {
    }
    rows = sampler.sample(status, "p");
    ASSERT_EQ(rows.size(), 1U);
    ASSERT_TRUE(rows[0].share);
    EXPECT_GT(*rows[0].share, 0);
    EXPECT_LE(*rows[0].share, 1.2);
    EXPECT_TRUE(sampler.sample(status, "another").empty());
}

} // namespace
} // namespace affinityctl

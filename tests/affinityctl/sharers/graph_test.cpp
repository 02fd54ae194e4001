// SPDX-License-Identifier: Apache-2.0
// Which pairs are sharers, and which threads belong together.
#include "affinityctl/sharers/report.hpp"
#include "seen_wakes.hpp"

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

using test::SeenWakes;
using Groups = std::vector<std::vector<int>>;

Groups groups_in(const SharerGraph& graph) {
    Groups groups;
    for (const auto& group : graph.groups) {
        groups.emplace_back();
        for (const auto& thread : group)
            groups.back().push_back(thread.tid);
    }
    return groups;
}

TEST(Graph, OfNothingIsEmpty) {
    const auto graph = graph_of(Wakes{});
    EXPECT_TRUE(graph.edges.empty());
    EXPECT_TRUE(graph.groups.empty());
    EXPECT_EQ(graph.wakes, 0U);
}

TEST(Graph, TellsPairsApart) {
    const auto graph = graph_of(SeenWakes().pair(3, 4, 900).pair(1, 2, 1000).wakes);
    ASSERT_EQ(graph.edges.size(), 2U);
    EXPECT_EQ(graph.edges[0].one.tid, 1);
    EXPECT_EQ(graph.edges[0].wakes(), 2000U);
    EXPECT_DOUBLE_EQ(graph.edges[0].rate, 200);
    EXPECT_DOUBLE_EQ(graph.edges[0].share, 1);
    EXPECT_EQ(groups_in(graph), (Groups{{1, 2}, {3, 4}}));
    EXPECT_EQ(graph.edges[1].group, 2U);
    EXPECT_EQ(graph.wakes, 3800U);
}

TEST(Graph, OneWayIsEnough) {
    SeenWakes seen;
    seen.wakes.pairs[{SeenWakes::id(9), SeenWakes::id(5)}] = 500;
    const auto graph = graph_of(seen.wakes);
    ASSERT_EQ(graph.edges.size(), 1U);
    EXPECT_EQ(graph.edges[0].one.tid, 5);
    EXPECT_EQ(graph.edges[0].one_wakes, 0U);
    EXPECT_EQ(graph.edges[0].other_wakes, 500U);
    EXPECT_EQ(groups_in(graph), (Groups{{5, 9}}));
}

struct Limit {
    const char* what;
    double seconds;
    std::uint64_t each_way, timers;
    bool is_sharer;
};

TEST(Graph, ChanceIsNoSharer) {
    const Limit limits[] = {
        {"the end of a thread is a wake-up", 10, 1, 0, false},
        {"nine in a second", 1, 4, 0, false},
        {"ten in a second", 1, 5, 0, true},
        {"ten in ten seconds", 10, 5, 0, true},
        {"twelve in a minute", 60, 6, 0, false},
        {"less than a hundredth of what wakes them", 10, 40, 10000, false},
        {"more than a hundredth", 10, 120, 10000, true},
    };
    for (const auto& limit : limits) {
        SeenWakes seen;
        seen.wakes.seconds = limit.seconds;
        seen.thread(1, "a").thread(2, "b").pair(1, 2, limit.each_way);
        for (auto& [id, thread] : seen.wakes.threads)
            thread.by_interrupts = limit.timers;
        const auto graph = graph_of(seen.wakes);
        EXPECT_EQ(graph.edges[0].is_sharer, limit.is_sharer) << limit.what;
        EXPECT_EQ(graph.groups.size(), limit.is_sharer ? 1U : 0U) << limit.what;
        EXPECT_EQ(graph.weak_pairs, limit.is_sharer ? 0U : 1U) << limit.what;
    }
}

TEST(Graph, TheOneThatDependsMoreDecides) {
    SeenWakes seen;
    seen.thread(1, "dispatcher").thread(2, "rare").pair(1, 2, 50);
    seen.wakes.threads.at(SeenWakes::id(1)).by_interrupts = 1'000'000;
    EXPECT_TRUE(graph_of(seen.wakes).edges[0].is_sharer);
}

TEST(Graph, WhoTalksToAllNowAndThenMakesNoGroupOfAll) {
    SeenWakes seen;
    for (int pair = 0; pair < 4; ++pair)
        seen.pair(10 + 2 * pair, 11 + 2 * pair, 10000).pair(1, 10 + 2 * pair, 200);
    const auto graph = graph_of(seen.wakes);
    EXPECT_EQ(groups_in(graph), (Groups{{10, 11}, {12, 13}, {14, 15}, {16, 17}}));
    EXPECT_TRUE(std::ranges::all_of(graph.edges, &SharerEdge::is_sharer));
    EXPECT_EQ(graph.edges.back().group, 0U);
}

TEST(Graph, ADispatcherWithItsWorkersIsOneGroup) {
    SeenWakes seen;
    for (int worker = 2; worker <= 9; ++worker)
        seen.pair(1, worker, 1000);
    EXPECT_EQ(groups_in(graph_of(seen.wakes)), (Groups{{1, 2, 3, 4, 5, 6, 7, 8, 9}}));
}

TEST(Graph, APipelineIsOneGroup) {
    EXPECT_EQ(groups_in(graph_of(
                  SeenWakes().pair(4, 5, 900).pair(3, 4, 1000).pair(1, 2, 1000).pair(2, 3, 700).wakes)),
              (Groups{{1, 2, 3, 4, 5}}));
}

TEST(Graph, TwoThousandThreadsAllWithAll) {
    SeenWakes seen;
    for (int one = 1; one <= 300; ++one)
        for (int other = one + 1; other <= 300; ++other)
            seen.pair(one, other, 20);
    const auto graph = graph_of(seen.wakes);
    EXPECT_EQ(graph.groups.size(), 0U) << "each pair has less than a hundredth of what wakes the two";
    seen.wakes.pairs.clear();
    for (int one = 1; one < 2000; ++one)
        seen.pair(one, one + 1, 20);
    EXPECT_EQ(graph_of(seen.wakes).groups.at(0).size(), 2000U);
}

} // namespace
} // namespace affinityctl

// SPDX-License-Identifier: Apache-2.0
// Large processes that wait to be looked at: whose turn it is, and what of them is kept.
#include "../inventory/recorded.hpp"
#include "app/unfinished_turns.hpp"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace affinityd::app {
namespace {

class UnfinishedTurnsTest : public testing::Test {
  protected:
    bool put(uid_t person, int pid, const ProcessChange& change = {}) {
        affinityd::test::add_process(tree_, {.id = pid, .comm = "large"});
        const auto root = affinityd::test::open_root(tree_);
        auto scan = inventory::ProcessScan::open(root, pid);
        EXPECT_TRUE(scan && *scan);
        return turns_.put(person,
                          Turn{.scan = std::move(**scan), .change = change, .policy = {}, .world = {}});
    }
    static int pid_of(const UnfinishedTurns::Next& next) {
        const auto* name = std::get_if<UnfinishedTurns::Name>(&next);
        return name != nullptr ? name->pid : std::get<Turn>(next).scan.id().tid;
    }
    affinityd::test::Tree tree_;
    UnfinishedTurns turns_;
};

TEST_F(UnfinishedTurnsTest, NobodyWaitsBehindAnotherPersonsMany) {
    for (int pid = 100; pid < 200; ++pid)
        ASSERT_TRUE(put(1000, pid));
    ASSERT_TRUE(put(0, 50));
    std::vector<uid_t> persons;
    for (int i = 0; i < 2; ++i) {
        (void)turns_.take();
        persons.push_back(turns_.taken_from());
    }
    EXPECT_EQ(persons, (std::vector<uid_t>{1000, 0}));
}

TEST_F(UnfinishedTurnsTest, OfAPersonsManyOnlySixteenAreUnderWayAndAllHaveTheirTurn) {
    for (int pid = 100; pid < 150; ++pid)
        ASSERT_TRUE(put(1000, pid));
    unsigned turns = 0;
    std::set<int> seen;
    while (!turns_.empty()) {
        auto next = turns_.take();
        seen.insert(pid_of(next));
        turns += std::holds_alternative<Turn>(next) ? 1 : 0;
    }
    EXPECT_EQ(turns, 16U);
    EXPECT_EQ(seen.size(), 50U);
}

TEST_F(UnfinishedTurnsTest, ThoseOfOnePersonAlternate) {
    put(1000, 100);
    put(1000, 101);
    std::vector<int> order;
    for (int i = 0; i < 4; ++i) {
        auto next = turns_.take();
        order.push_back(pid_of(next));
        ASSERT_TRUE(turns_.put(turns_.taken_from(), std::move(std::get<Turn>(next))));
    }
    EXPECT_EQ(order, (std::vector{100, 101, 100, 101}));
}

TEST_F(UnfinishedTurnsTest, OneThatIsNamedAgainIsToldSoAndKeepsItsPlace) {
    for (int pid = 100; pid < 117; ++pid)
        put(1000, pid);
    EXPECT_FALSE(turns_.name_again(99, {}));
    EXPECT_TRUE(turns_.name_again(100, {.has_changed = false, .is_executed = true}));
    EXPECT_TRUE(turns_.name_again(100, {.has_changed = true}));
    EXPECT_TRUE(turns_.name_again(116, {.is_executed = true})) << "only its name is kept";
    auto first = turns_.take();
    const auto& again = std::get<Turn>(first).again;
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->is_executed);
    EXPECT_TRUE(again->has_changed);
    auto second = turns_.take();
    ASSERT_TRUE(std::holds_alternative<UnfinishedTurns::Name>(second)) << "there is room for it now";
    EXPECT_EQ(pid_of(second), 116);
    EXPECT_TRUE(std::get<UnfinishedTurns::Name>(second).change.is_executed);
    EXPECT_FALSE(std::get<Turn>(turns_.take()).again);
}

TEST_F(UnfinishedTurnsTest, ThoseThatAreNamedAgainAndAgainKeepNobodyWaiting) {
    for (int pid = 100; pid < 117; ++pid)
        put(1000, pid);
    std::set<int> seen;
    for (int i = 0; i < 40; ++i) {
        auto next = turns_.take();
        const int pid = pid_of(next);
        if (std::holds_alternative<UnfinishedTurns::Name>(next)) seen.insert(pid);
        if (std::holds_alternative<Turn>(next)) turns_.finished();
        put(1000, pid);
    }
    EXPECT_TRUE(seen.contains(116));
}

TEST_F(UnfinishedTurnsTest, OneThatBeginsAndOneThatGoesOnAlternate) {
    for (int pid = 100; pid < 120; ++pid)
        put(1000, pid);
    (void)turns_.take(); // one of those that are under way ends
    std::vector<bool> begins;
    for (int i = 0; i < 3; ++i)
        begins.push_back(std::holds_alternative<UnfinishedTurns::Name>(turns_.take()));
    EXPECT_EQ(begins, (std::vector{true, false, true}));
}

TEST_F(UnfinishedTurnsTest, OneThatWaitsKeepsWhyItIsLookedAt) {
    for (int pid = 100; pid < 116; ++pid)
        put(1000, pid);
    put(1000, 116, {.creator = 7, .has_changed = false, .is_executed = true});
    (void)turns_.take();
    const auto next = turns_.take();
    const auto& change = std::get<UnfinishedTurns::Name>(next).change;
    EXPECT_EQ(change.creator, 7);
    EXPECT_TRUE(change.is_executed);
    EXPECT_FALSE(change.has_changed);
}

TEST_F(UnfinishedTurnsTest, MemoryIsBoundedAndOnePersonLeavesRoomForAnother) {
    for (int pid = 1; pid <= 4096; ++pid)
        ASSERT_TRUE(put(1000, pid));
    EXPECT_FALSE(put(1000, 5000));
    EXPECT_TRUE(put(7, 5000));
    for (int pid = 10'000; pid < 10'000 + 16'384 - 4097; ++pid)
        ASSERT_TRUE(put(static_cast<uid_t>(2000 + pid % 4), pid));
    EXPECT_FALSE(put(8, 5001));
    (void)turns_.take();
    EXPECT_TRUE(put(8, 5001));
    turns_.clear();
    EXPECT_TRUE(turns_.empty());
}

} // namespace
} // namespace affinityd::app

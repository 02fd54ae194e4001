// SPDX-License-Identifier: Apache-2.0
#include "state/joined_threads.hpp"
#include "state/journal_line.hpp"
#include "support/full_disk.hpp"
#include "support/tree.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace affinityd::state {
namespace {

using planner::Joined;

const Joined joined_io{"server", "io"}, joined_served{"server", "worker", true};
constexpr auto always = [] { return true; };
constexpr auto never = [] { return false; };

class JoinedThreadsTest : public testing::Test {
  protected:
    test::Tree tree_;
    std::string path_ = tree_.path("joins");
    void expect_next_knows(const TaskId& thread, const Joined* wanted) {
        JoinedThreads next;
        EXPECT_TRUE(JoinedThreads::open(path_, next));
        const auto* found = next.find(thread);
        ASSERT_EQ(found != nullptr, wanted != nullptr);
        if (wanted == nullptr) return;
        EXPECT_EQ(*found, *wanted);
    }
    [[nodiscard]] std::string text() const {
        std::ifstream file(path_);
        return {std::istreambuf_iterator<char>(file), {}};
    }
};

TEST_F(JoinedThreadsTest, TheNextDaemonKnowsWhoHasJoined) {
    JoinedThreads threads;
    ASSERT_TRUE(JoinedThreads::open(path_, threads));
    EXPECT_TRUE(threads.put(10, {11, 100}, joined_io));
    EXPECT_TRUE(threads.put(10, {12, 100}, joined_io));
    EXPECT_TRUE(threads.put(10, {12, 100}, joined_served));
    EXPECT_TRUE(threads.put(10, {13, 100}, joined_io));
    EXPECT_TRUE(threads.forget({13, 100}));
    expect_next_knows({11, 100}, &joined_io);
    expect_next_knows({12, 100}, &joined_served);
    expect_next_knows({13, 100}, nullptr);
    expect_next_knows({11, 101}, nullptr);
    EXPECT_EQ(std::filesystem::status(path_).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(JoinedThreadsTest, LinesOfAnEarlierBootAndTornOnesCountForNothing) {
    JoinedThreads threads;
    ASSERT_TRUE(JoinedThreads::open(path_, threads));
    EXPECT_TRUE(threads.put(10, {11, 100}, joined_io));
    EXPECT_TRUE(threads.put(10, {12, 100}, joined_io));
    const auto whole = text();
    tree_.file("joins", whole.substr(0, whole.size() - 5));
    expect_next_knows({11, 100}, &joined_io);
    expect_next_knows({12, 100}, nullptr);
    tree_.file("joins", LineWriter("of boot 00000000-0000-4000-8000-000000000000").finish() +
                            whole.substr(whole.find("joined")));
    expect_next_knows({11, 100}, nullptr);
    tree_.file("joins", std::string(100'000, '\xff') + "\n\t\t\t\njoined\t1\t2\n" + whole);
    expect_next_knows({11, 100}, &joined_io);
}

TEST_F(JoinedThreadsTest, ALinkInItsPlaceIsNotFollowed) {
    tree_.file("other", "mine");
    tree_.link("joins", tree_.path("other"));
    JoinedThreads threads;
    EXPECT_FALSE(JoinedThreads::open(path_, threads));
    EXPECT_TRUE(threads.put(10, {11, 100}, joined_io)) << "the link has given way to the file";
    std::ifstream other(tree_.path("other"));
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(other), {}), "mine");
}

TEST_F(JoinedThreadsTest, AProcessHasLimits) {
    JoinedThreads threads;
    for (int tid = 1; tid <= static_cast<int>(JoinedThreads::most_of_process); ++tid) {
        ASSERT_TRUE(threads.has_room(1));
        ASSERT_TRUE(threads.put(1, {tid, 1}, joined_io));
    }
    EXPECT_FALSE(threads.has_room(1));
    EXPECT_TRUE(threads.has_room(2));
    EXPECT_TRUE(threads.forget({1, 1}));
    EXPECT_TRUE(threads.has_room(1));
}

TEST_F(JoinedThreadsTest, WhoGoesElsewhereNeedsNoRoom) {
    JoinedThreads threads;
    ASSERT_TRUE(JoinedThreads::open(path_, threads));
    for (int tid = 1; tid <= static_cast<int>(JoinedThreads::most_of_process); ++tid)
        ASSERT_TRUE(threads.put(1, {tid, 1}, joined_io));
    ASSERT_TRUE(threads.put(1, {7, 1}, joined_served));
    expect_next_knows({7, 1}, &joined_served);
}

TEST_F(JoinedThreadsTest, TidyingForgetsThoseWhoHaveGoneInSteps) {
    JoinedThreads threads;
    ASSERT_TRUE(JoinedThreads::open(path_, threads));
    for (int tid = 1; tid <= 5; ++tid)
        EXPECT_TRUE(threads.put(1, {tid, 1}, joined_io));
    const auto is_there = [](int, const TaskId& thread, const Joined&) { return thread.tid != 3; };
    int steps = 1;
    while (!threads.tidy(is_there, always))
        ++steps;
    EXPECT_GE(steps, 5);
    EXPECT_EQ(threads.size(), 4U);
    expect_next_knows({3, 1}, nullptr);
    expect_next_knows({4, 1}, &joined_io);
}

TEST_F(JoinedThreadsTest, AFileThatIsMostlyHistoryIsWrittenAnewWhileOthersJoin) {
    JoinedThreads threads;
    ASSERT_TRUE(JoinedThreads::open(path_, threads));
    EXPECT_TRUE(threads.put(1, {1, 1}, joined_io));
    for (int i = 0; !threads.is_bloated(); ++i)
        ASSERT_TRUE(threads.put(1, {2, 1}, i % 2 == 0 ? joined_io : joined_served));
    const auto before = std::filesystem::file_size(path_);
    const auto is_there = [](int, const TaskId&, const Joined&) { return true; };
    for (bool is_done = false; !is_done;) {
        is_done = threads.tidy(is_there, always);
        const auto other = *threads.find({1, 1}) == joined_io ? joined_served : joined_io;
        ASSERT_TRUE(is_done || threads.put(1, {1, 1}, other));
    }
    const Joined last = *threads.find({1, 1});
    EXPECT_LT(std::filesystem::file_size(path_), before / 100);
    expect_next_knows({1, 1}, &last);
    EXPECT_TRUE(threads.tidy(is_there, never));
}

TEST_F(JoinedThreadsTest, AFileThatWasRemovedComesBack) {
    JoinedThreads threads;
    ASSERT_TRUE(JoinedThreads::open(path_, threads));
    EXPECT_TRUE(threads.put(1, {1, 1}, joined_io));
    std::filesystem::remove(path_);
    EXPECT_TRUE(threads.tidy([](int, const TaskId&, const Joined&) { return true; }, never));
    expect_next_knows({1, 1}, &joined_io);
}

TEST_F(JoinedThreadsTest, WhatAFullDiskDidNotTakeIsWrittenLater) {
    const auto is_there = [](int, const TaskId&, const Joined&) { return true; };
    JoinedThreads threads;
    ASSERT_TRUE(JoinedThreads::open(path_, threads));
    EXPECT_TRUE(threads.put(1, {1, 1}, joined_io));
    {
        const test::FullDisk full;
        EXPECT_FALSE(threads.put(1, {2, 1}, joined_io));
        EXPECT_FALSE(threads.forget({1, 1}));
        EXPECT_TRUE(threads.tidy(is_there, never));
    }
    EXPECT_TRUE(threads.tidy(is_there, never));
    expect_next_knows({1, 1}, nullptr);
    expect_next_knows({2, 1}, &joined_io);
}

TEST_F(JoinedThreadsTest, ADiskThatIsFullAtTheStartIsTriedAgain) {
    JoinedThreads threads;
    {
        const test::FullDisk full;
        EXPECT_FALSE(JoinedThreads::open(path_, threads));
        EXPECT_FALSE(threads.put(1, {1, 1}, joined_io));
        EXPECT_NE(threads.find({1, 1}), nullptr);
    }
    EXPECT_TRUE(threads.tidy([](int, const TaskId&, const Joined&) { return true; }, never));
    EXPECT_TRUE(threads.put(1, {2, 1}, joined_io));
    expect_next_knows({1, 1}, &joined_io);
    expect_next_knows({2, 1}, &joined_io);
}

} // namespace
} // namespace affinityd::state

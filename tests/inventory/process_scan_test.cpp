// SPDX-License-Identifier: Apache-2.0
#include "../support/no_descriptors_left.hpp"
#include "inventory/process_scan.hpp"
#include "recorded.hpp"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

namespace affinityd::inventory {
namespace {

using namespace test;

bool never() { return false; }
bool always() { return true; }

std::vector<int> tids(const std::vector<Thread>& threads) {
    std::vector<int> numbers;
    for (const auto& thread : threads)
        numbers.push_back(thread.id.tid);
    return numbers;
}

std::optional<ProcessScan> begin(const host::Root& root, int pid) {
    auto scan = ProcessScan::open(root, pid);
    EXPECT_TRUE(scan) << scan.error().to_string();
    return scan ? std::move(*scan) : std::nullopt;
}

std::vector<int> all_threads(const host::Root& root, int pid) {
    auto scan = begin(root, pid);
    if (!scan) return {};
    EXPECT_TRUE(scan->step(never));
    const auto threads = scan->take_threads();
    EXPECT_TRUE(threads) << threads.error().to_string();
    return tids(threads.value_or(std::vector<Thread>{}));
}

TEST(ProcessScan, BeginsWithTheStatLineAlone) {
    const Tree tree;
    tree.file("proc/50/stat",
              RecordedTask{.id = 50, .comm = "a) (b", .parent = 7, .flags = pf_kthread, .start = 300}.stat());
    const auto root = open_root(tree);
    const auto scan = begin(root, 50);
    ASSERT_TRUE(scan);
    EXPECT_EQ(scan->id(), (TaskId{50, 300}));
    EXPECT_EQ(scan->comm(), "a) (b");
    EXPECT_EQ(scan->parent(), 7);
    EXPECT_TRUE(scan->is_kernel());
    EXPECT_EQ(scan->facts().id(), scan->id());
}

TEST(ProcessScan, MainThreadComesFromTheFirstLineEvenIfItsTaskFileIsUnreadable) {
    const Tree tree;
    add_process(tree, {.id = 50, .comm = "main", .threads = 2, .allowed = "1"});
    tree.file("proc/50/task/50/stat", "never read");
    add_thread(tree, 50, {.id = 7, .comm = "low", .threads = 2, .start = 300, .allowed = "2"});
    const auto root = open_root(tree);
    auto scan = begin(root, 50);
    ASSERT_TRUE(scan && scan->step(never));
    const auto threads = scan->take_threads();
    ASSERT_TRUE(threads);
    EXPECT_EQ(tids(*threads), (std::vector<int>{50, 7})) << "the main thread first, whatever its number";
    EXPECT_EQ(threads->at(0).comm, "main");
    EXPECT_EQ(threads->at(1).id, (TaskId{7, 300}));
    EXPECT_EQ(threads->at(1).allowed, CpuSet{2});
}

TEST(ProcessScan, GoneOrUncollectedProcessHasNoScan) {
    const Tree tree;
    add_process(tree, {.id = 50, .state = 'Z'});
    tree.file("proc/60/stat", "garbage");
    tree.file("proc/70/stat", RecordedTask{.id = 71}.stat());
    const auto root = open_root(tree);
    for (const int pid : {50, 60, 70, 80, 0, -1})
        EXPECT_FALSE(begin(root, pid)) << pid;
}

TEST(ProcessScan, DeadLeaderIsLeftOutAndItsThreadsAreKept) {
    const Tree tree;
    add_process(tree, {.id = 60, .state = 'Z', .threads = 2});
    add_thread(tree, 60, {.id = 60, .state = 'Z', .threads = 2});
    add_thread(tree, 60, {.id = 61, .threads = 2});
    add_thread(tree, 60, {.id = 62, .state = 'X', .threads = 2});
    EXPECT_EQ(all_threads(open_root(tree), 60), std::vector<int>{61});
}

TEST(ProcessScan, SlicesOfOneStepGiveTheSameAsOneGo) {
    const Tree tree;
    add_process(tree, {.id = 50, .threads = 500});
    std::vector<int> expected{50};
    for (int tid = 1000; tid < 1499; ++tid) {
        add_thread(tree, 50, {.id = tid});
        expected.push_back(tid);
    }
    const auto root = open_root(tree);
    auto scan = begin(root, 50);
    ASSERT_TRUE(scan);
    int slices = 1;
    while (!scan->step(always))
        ++slices;
    EXPECT_EQ(tids(scan->take_threads().value()), expected);
    EXPECT_GT(slices, 500) << "it stops after every thread and within long listings";
    EXPECT_EQ(all_threads(root, 50), expected);
}

TEST(ProcessScan, ThreadBornDuringTheScanIsFoundInTheNextRound) {
    const Tree tree;
    add_process(tree, {.id = 50, .threads = 2});
    add_thread(tree, 50, {.id = 51});
    const auto root = open_root(tree);
    auto scan = begin(root, 50);
    ASSERT_TRUE(scan);
    EXPECT_FALSE(scan->step(always)); // opened
    EXPECT_FALSE(scan->step(always)); // listed
    add_thread(tree, 50, {.id = 52});
    while (!scan->step(always)) {
    }
    EXPECT_EQ(tids(scan->take_threads().value()), (std::vector<int>{50, 51, 52}));
}

TEST(ProcessScan, ProcessThatGoesWhileCutIsTakenAsFarAsItWasSeen) {
    const Tree tree;
    add_process(tree, {.id = 50, .threads = 4});
    for (const int tid : {50, 51, 52, 53})
        add_thread(tree, 50, {.id = tid, .threads = 4});
    const auto root = open_root(tree);
    auto scan = begin(root, 50);
    ASSERT_TRUE(scan);
    EXPECT_FALSE(scan->step(always));
    std::filesystem::remove_all(tree.path("proc/50/task"));
    while (!scan->step(always)) {
    }
    const auto found = tids(scan->take_threads().value());
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front(), 50);
    EXPECT_LE(found.size(), 2U) << "one was read before";
}

TEST(ProcessScan, ThreadsOfALaterProcessWithTheSameNumberAreNotTaken) {
    const Tree tree;
    add_process(tree, {.id = 50, .threads = 2, .start = 100});
    const auto root = open_root(tree);
    auto scan = begin(root, 50);
    ASSERT_TRUE(scan);
    add_process(tree, {.id = 50, .threads = 2, .start = 200});
    add_thread(tree, 50, {.id = 51});
    EXPECT_TRUE(scan->step(never));
    EXPECT_TRUE(scan->take_threads().value().empty());
}

TEST(ProcessScan, WithoutFreeDescriptorsNothingIsSaidToBeGone) {
    const auto root = host::Root::open().value();
    auto scan = begin(root, ::getpid());
    ASSERT_TRUE(scan);
    const Tree tree;
    add_process(tree, {.id = 50, .threads = 2});
    add_thread(tree, 50, {.id = 51});
    const auto recorded = open_root(tree);
    auto cut = begin(recorded, 50);
    ASSERT_TRUE(cut);
    const NoDescriptorsLeft none;
    const auto head = ProcessScan::open(root, ::getpid());
    ASSERT_FALSE(head);
    EXPECT_EQ(head.error().code, EMFILE);
    EXPECT_TRUE(cut->step(never));
    const auto threads = cut->take_threads();
    ASSERT_FALSE(threads) << "an unreadable list is no process without threads";
    EXPECT_EQ(threads.error().code, EMFILE);
}

} // namespace
} // namespace affinityd::inventory

// SPDX-License-Identifier: Apache-2.0
#include "inventory/descriptors.hpp"
#include "inventory/process_files.hpp"
#include "recorded.hpp"

#include <map>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace affinityd::inventory {
namespace {

using namespace test;

std::vector<int> tids(const WholeProcess& process) {
    std::vector<int> numbers;
    for (const auto& thread : process.threads)
        numbers.push_back(thread.id.tid);
    return numbers;
}

std::map<int, std::vector<int>> scan_whole(const host::Root& root) {
    std::map<int, std::vector<int>> found;
    for (const int pid : list_pids(root).value_or(std::vector<int>{}))
        if (const auto process = read_process(root, pid)) found.emplace(pid, tids(*process));
    return found;
}

TEST(Recording, ProcessWithThreads) {
    const Tree tree;
    add_process(tree, {.id = 50, .comm = "main", .threads = 3, .allowed = "0-1"});
    add_thread(tree, 50, {.id = 50, .comm = "main", .threads = 3, .allowed = "0-1"});
    add_thread(tree, 50, {.id = 7, .comm = "low (x)", .threads = 3, .start = 300, .allowed = "2000-2001"});
    add_thread(tree, 50, {.id = 60, .comm = "high", .flags = pf_no_setaffinity, .threads = 3, .allowed = ""});
    tree.folder("proc/50/task/no-number");
    const auto root = open_root(tree);
    const auto process = read_process(root, 50);
    ASSERT_TRUE(process);
    EXPECT_EQ(tids(*process), (std::vector<int>{50, 7, 60})) << "the main thread first, whatever its number";
    EXPECT_EQ(process->threads[0].comm, "main");
    EXPECT_EQ(process->threads[0].allowed, (CpuSet{0, 1}));
    EXPECT_EQ(process->threads[1].comm, "low (x)");
    EXPECT_EQ(process->threads[1].id, (TaskId{7, 300}));
    EXPECT_EQ(process->threads[1].allowed, (CpuSet{2000, 2001}));
    EXPECT_TRUE(process->threads[2].is_immovable());
    EXPECT_TRUE(process->threads[2].allowed.empty());
}

TEST(Recording, FlatOneHasTheMainThreadOnly) {
    const Tree tree;
    add_process(tree, {.id = 50, .flags = pf_kthread, .threads = 3, .allowed = "1"});
    const auto root = open_root(tree);
    const auto process = read_process(root, 50);
    ASSERT_TRUE(process);
    EXPECT_TRUE(process->facts->is_kernel());
    EXPECT_EQ(tids(*process), std::vector<int>{50});
    EXPECT_EQ(process->threads[0].allowed, CpuSet{1});
    const auto thread = read_thread(root, 50, 50).value();
    ASSERT_TRUE(thread);
    EXPECT_EQ(thread->allowed, CpuSet{1});
    EXPECT_TRUE(thread->is_kernel());
    EXPECT_EQ(read_allowed(root, 50, 50), CpuSet{1});
    EXPECT_FALSE(read_thread(root, 50, 51).value());
    EXPECT_FALSE(read_allowed(root, 50, 51));
}

TEST(Recording, EndedTasksAreLeftOut) {
    const Tree tree;
    add_process(tree, {.id = 50, .state = 'Z'});
    add_process(tree, {.id = 60, .state = 'Z', .threads = 2}); // the main thread has ended, another goes on
    add_thread(tree, 60, {.id = 60, .state = 'Z', .threads = 2});
    add_thread(tree, 60, {.id = 61, .threads = 2});
    add_thread(tree, 60, {.id = 62, .state = 'X', .threads = 2});
    const auto root = open_root(tree);
    EXPECT_FALSE(read_process(root, 50));
    const auto process = read_process(root, 60);
    ASSERT_TRUE(process);
    EXPECT_EQ(tids(*process), std::vector<int>{61});
    EXPECT_FALSE(read_thread(root, 60, 60).value());
    EXPECT_TRUE(read_thread(root, 60, 61).value());
}

TEST(Recording, LyingFilesAreLeftOut) {
    const Tree tree;
    add_process(tree, {.id = 50});
    add_thread(tree, 50, {.id = 50});
    tree.file("proc/50/task/51/stat", RecordedTask{.id = 99}.stat()); // says it is another
    tree.file("proc/50/task/52/stat", "garbage");
    tree.file("proc/50/task/53/stat", "");
    tree.folder("proc/50/task/54/stat");
    tree.file("proc/60/stat", "garbage");
    tree.file("proc/99999999999/stat", RecordedTask{.id = 5}.stat());
    tree.file("proc/0/stat", RecordedTask{.id = 5}.stat());
    tree.file("proc/70", "a file where a folder belongs");
    const auto root = open_root(tree);
    EXPECT_EQ(scan_whole(root), (std::map<int, std::vector<int>>{{50, {50}}}));
    EXPECT_EQ(*list_pids(root), (std::vector<int>{50, 60, 70}));
    EXPECT_FALSE(read_thread(root, 50, 51).value());
}

TEST(Recording, WithoutProcesses) {
    const Tree tree;
    const auto root = open_root(tree);
    ASSERT_TRUE(list_pids(root));
    EXPECT_TRUE(list_pids(root)->empty());
    EXPECT_TRUE(scan_whole(root).empty());
    EXPECT_FALSE(read_process(root, 1));
}

TEST(Recording, UnreadableMasksAreEmptyNotAll) {
    const Tree tree;
    add_process(tree, {.id = 50, .allowed = "0-4294967295"});
    add_process(tree, {.id = 51, .allowed = "a,b"});
    tree.file("proc/52/stat", RecordedTask{.id = 52}.stat());
    const auto root = open_root(tree);
    for (const int pid : {50, 51, 52}) {
        EXPECT_TRUE(read_process(root, pid)->threads.at(0).allowed.empty()) << pid;
        EXPECT_FALSE(read_allowed(root, pid, pid)) << pid;
    }
}

} // namespace
} // namespace affinityd::inventory

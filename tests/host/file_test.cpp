// SPDX-License-Identifier: Apache-2.0
#include "../support/nobody.hpp"
#include "../support/tree.hpp"
#include "host/file.hpp"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::host {
namespace {

using test::Tree;

TEST(File, ReadsWholeTextAndNothingWhenAbsent) {
    const Tree tree;
    tree.file("a", std::string("x\0y", 3));
    const auto text = read_file(tree.path("a"));
    ASSERT_TRUE(text && *text);
    EXPECT_EQ(**text, std::string("x\0y", 3));
    const auto absent = read_file(tree.path("b"));
    ASSERT_TRUE(absent);
    EXPECT_FALSE(*absent);
}

TEST(File, RefusesWhatIsNoOrdinaryFileOrTooLarge) {
    const Tree tree;
    tree.folder("folder");
    tree.file("big", std::string(101, 'x'));
    ASSERT_EQ(::mkfifo(tree.path("pipe").c_str(), 0600), 0);
    EXPECT_FALSE(read_file(tree.path("folder")));
    EXPECT_FALSE(read_file(tree.path("pipe")));
    EXPECT_FALSE(read_file("/dev/zero"));
    EXPECT_FALSE(read_file(tree.path("big"), 100));
    EXPECT_TRUE(read_file(tree.path("big"), 101));
}

TEST(File, ReplaceLeavesNothingElseBehind) {
    const Tree tree;
    tree.file("state", "old");
    ASSERT_TRUE(replace_file(tree.path("state"), "new", 0600));
    EXPECT_EQ(**read_file(tree.path("state")), "new");
    struct stat status {};
    ASSERT_EQ(::stat(tree.path("state").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(tree.path()), {}), 1);
    const auto failed = replace_file(tree.path("no/such/folder"), "x");
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, ENOENT);
}

TEST(File, ReplaceLeavesFilesOfOtherNamesAlone) {
    const Tree tree;
    tree.file("state.new", "the user's");
    tree.link("state", "state.new");
    EXPECT_TRUE(replace_file(tree.path("state"), "x"));
    EXPECT_EQ(**read_file(tree.path("state.new")), "the user's");
    EXPECT_FALSE(std::filesystem::is_symlink(tree.path("state")));
}

TEST(File, OnlyARegularFileIsReplaceable) {
    const Tree tree;
    tree.file("old", "text");
    tree.link("link", "old");
    ASSERT_EQ(::mkfifo(tree.path("pipe").c_str(), 0600), 0);
    for (const auto* name : {"old", "new"})
        EXPECT_TRUE(check_replaceable(tree.path(name))) << name;
    for (const auto* name : {"link", "pipe", "", "no/such/file", "old/below"})
        EXPECT_FALSE(check_replaceable(tree.path(name))) << name;
    EXPECT_FALSE(check_replaceable("/dev/null"));
    EXPECT_FALSE(std::filesystem::exists(tree.path("new"))) << "the question makes no file";
}

TEST(File, AFileOfOthersInAFolderThatIsOpenToAllIsNotReplaceable) {
    const Tree tree;
    tree.file("open/theirs", "text");
    ASSERT_EQ(::chmod(tree.path("open").c_str(), 01777), 0);
    if (::lchown(tree.path("open/theirs").c_str(), test::nobody, test::nobody) != 0) return; // not root
    EXPECT_EQ(check_replaceable(tree.path("open/theirs")).error().code, EACCES);
}

TEST(File, Directories) {
    const Tree tree;
    ASSERT_TRUE(make_directories(tree.path("a/b/c"), 0750));
    ASSERT_TRUE(make_directories(tree.path("a/b/c"), 0700))
        << "it exists: no fault, and its mode is left alone";
    struct stat status {};
    ASSERT_EQ(::stat(tree.path("a/b/c").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0750U);
    tree.file("file", "");
    EXPECT_FALSE(make_directories(tree.path("file/below")));
}

TEST(File, OnlyOneHoldsTheLock) {
    const Tree tree;
    auto first = lock_file(tree.path("lock"));
    ASSERT_TRUE(first && *first);
    const auto second = lock_file(tree.path("lock"));
    ASSERT_TRUE(second);
    EXPECT_FALSE(*second);
    (*first)->reset();
    const auto third = lock_file(tree.path("lock"));
    ASSERT_TRUE(third);
    EXPECT_TRUE(*third);
    EXPECT_FALSE(lock_file(tree.path("no/such/lock")));
}

} // namespace
} // namespace affinityd::host

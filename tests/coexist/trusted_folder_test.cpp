// SPDX-License-Identifier: Apache-2.0
#include "coexist/trusted_folder.hpp"
#include "support/nobody.hpp"
#include "support/tree.hpp"

#include <algorithm>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::coexist {
namespace {

using affinityd::test::nobody;

class TrustedFolders : public testing::Test {
  protected:
    TrustedFolders() { tree_.file("a/b/file", "text"); }
    void mode(const std::string& name, unsigned mode) const {
        ASSERT_EQ(::chmod(tree_.path(name).c_str(), mode), 0);
    }
    void give_away(const std::string& name) const {
        ASSERT_EQ(::chown(tree_.path(name).c_str(), nobody, nobody), 0) << "the test needs to be root";
    }
    [[nodiscard]] bool opens(std::string_view path) const {
        return TrustedFolder::open(tree_.path(), path).has_value();
    }
    [[nodiscard]] bool reads(const std::string& name) const {
        const auto folder = TrustedFolder::open(tree_.path(), "/a/b");
        if (!folder) return false;
        const auto file = folder->open_file(name);
        return file && *file;
    }
    test::Tree tree_;
};

TEST_F(TrustedFolders, AFolderOfRootWithAFileOfRootIsRead) {
    EXPECT_TRUE(opens("/a/b"));
    EXPECT_TRUE(reads("file"));
    const auto folder = TrustedFolder::open(tree_.path(), "/a/b");
    const auto missing = folder->open_file("missing");
    EXPECT_TRUE(missing && !*missing);
    EXPECT_EQ(folder->list(10), std::vector<std::string>{"file"});
    EXPECT_TRUE(folder->list(0).empty());
}

TEST_F(TrustedFolders, AnotherOwnerOnTheWayIsRefused) {
    give_away("a");
    EXPECT_FALSE(opens("/a/b"));
    const auto error = TrustedFolder::open(tree_.path(), "/a/b").error();
    EXPECT_EQ(error.subject, "/a") << "and nothing beyond it is touched";
}

TEST_F(TrustedFolders, AnotherOwnerOfTheLastFolderIsRefused) {
    give_away("a/b");
    EXPECT_FALSE(opens("/a/b"));
}

TEST_F(TrustedFolders, AFolderThatOthersCanWriteToIsRefusedUnlessItIsAStickyAncestor) {
    for (const unsigned bits : {0775U, 0757U, 0777U}) {
        mode("a", bits);
        EXPECT_FALSE(opens("/a/b")) << bits;
    }
    mode("a", 01777);
    EXPECT_TRUE(opens("/a/b")) << "as /tmp is";
    EXPECT_FALSE(opens("/a")) << "anybody can put files there";
    mode("a", 0755);
    mode("a/b", 01777);
    EXPECT_FALSE(opens("/a/b"));
}

TEST_F(TrustedFolders, SymbolicLinksAreNotFollowed) {
    tree_.link("way", "a");
    tree_.link("a/last", "b");
    tree_.link("a/b/link", "file");
    EXPECT_FALSE(opens("/way/b"));
    EXPECT_FALSE(opens("/a/last"));
    EXPECT_FALSE(reads("link"));
}

TEST_F(TrustedFolders, OnlyPlainAbsolutePathsAreTried) {
    using namespace std::string_view_literals;
    for (const auto path : {""sv, "a/b"sv, "/"sv, "//a/b"sv, "/a//b"sv, "/a/./b"sv, "/a/../a/b"sv, "/a/b/"sv,
                            "/a/b\n"sv, "/a\0/b"sv, "/a/\x7f"sv, "/a/b/file"sv, "@/a/b"sv})
        EXPECT_FALSE(opens(path)) << path;
    EXPECT_FALSE(opens("/" + std::string(300, 'x')));
    EXPECT_FALSE(opens("/a" + std::string(5000, '/')));
    const auto folder = TrustedFolder::open(tree_.path(), "/a/b");
    for (const char* name : {"", ".", "..", "../b/file", "fi\nle"})
        EXPECT_FALSE(folder->open_file(name)) << name;
}

TEST_F(TrustedFolders, WhatIsNoRegularFileIsRefusedAtOnce) {
    ASSERT_EQ(::mkfifo(tree_.path("a/b/fifo").c_str(), 0600), 0);
    tree_.folder("a/b/folder");
    EXPECT_FALSE(reads("fifo")) << "and nobody waits for a writer";
    EXPECT_FALSE(reads("folder"));
}

TEST_F(TrustedFolders, AFileThatOthersOwnOrCanWriteToIsRefused) {
    mode("a/b/file", 0664);
    EXPECT_FALSE(reads("file"));
    mode("a/b/file", 0644);
    EXPECT_TRUE(reads("file"));
    give_away("a/b/file");
    EXPECT_FALSE(reads("file"));
}

} // namespace
} // namespace affinityd::coexist

// SPDX-License-Identifier: Apache-2.0
// The policy folders as a source of the loop.
#include "app/simulated.hpp"
#include "events/folder_watch.hpp"
#include "turning.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>

namespace affinityd::events {
namespace {

using std::chrono::milliseconds;
using test::Turning;

class FolderWatchTest : public testing::Test {
  protected:
    void SetUp() override {
        tree_.folder("a");
        tree_.folder("b");
        watch_ = FolderWatch::start(
            turning_.event(), {tree_.path("a"), tree_.path("missing"), tree_.path("b")}, [this] { ++told_; },
            quiet);
        ASSERT_TRUE(watch_);
    }
    [[nodiscard]] bool is_told(unsigned times) {
        return turning_.until([&] { return told_ >= times; });
    }
    static constexpr milliseconds quiet{100}, long_after{200};
    affinityd::test::Tree tree_;
    Turning turning_;
    std::unique_ptr<FolderWatch> watch_;
    unsigned told_ = 0;
};

TEST_F(FolderWatchTest, EachKindOfChangeIsReported) {
    tree_.file("b/x.yaml", "a");
    EXPECT_TRUE(is_told(1)) << "written";
    std::filesystem::rename(tree_.path("b/x.yaml"), tree_.path("x.yaml"));
    EXPECT_TRUE(is_told(2)) << "moved away";
    std::filesystem::rename(tree_.path("x.yaml"), tree_.path("a/y.yaml"));
    EXPECT_TRUE(is_told(3)) << "moved here";
    std::filesystem::remove(tree_.path("a/y.yaml"));
    EXPECT_TRUE(is_told(4)) << "removed";
    turning_.turn_for(long_after);
    EXPECT_EQ(told_, 4U);
}

/// The kernel tells of a new link that it was created, and nothing else.
TEST_F(FolderWatchTest, LinksAreReported) {
    tree_.file("x.yaml", "a");
    std::filesystem::create_symlink("/dev/null", tree_.path("a/masked.yaml"));
    EXPECT_TRUE(is_told(1)) << "a symbolic link";
    std::filesystem::create_hard_link(tree_.path("x.yaml"), tree_.path("b/x.yaml"));
    EXPECT_TRUE(is_told(2)) << "a hard link";
    tree_.file("empty", "");
    std::filesystem::create_hard_link(tree_.path("empty"), tree_.path("b/empty.yaml"));
    EXPECT_TRUE(is_told(3)) << "one that masks, too";
    std::filesystem::create_symlink("x.yaml", tree_.path("a/4913"));
    std::filesystem::create_symlink("me@host.1", tree_.path("a/.#x.yaml")); // as Emacs marks what it edits
    turning_.turn_for(long_after);
    EXPECT_EQ(told_, 3U);
}

/// So are files published that must replace no other.
TEST_F(FolderWatchTest, AHardLinkIsReportedWhoseOtherNameIsGone) {
    tree_.file("unpublished", "a");
    std::filesystem::create_hard_link(tree_.path("unpublished"), tree_.path("a/x.yaml"));
    std::filesystem::remove(tree_.path("unpublished"));
    EXPECT_TRUE(is_told(1));
}

TEST_F(FolderWatchTest, AFileIsReportedWhenItHasBeenWritten) {
    std::filesystem::create_symlink("/dev/null", tree_.path("b/overrides.yaml"));
    EXPECT_TRUE(is_told(1)) << "another folder has a link of that name";
    for (const std::string name : {"a/x.yaml", "a/overrides.yaml"}) {
        const auto before = told_;
        std::ofstream file(tree_.path(name));
        turning_.turn_for(long_after);
        EXPECT_EQ(told_, before) << name << " is empty";
        file << "a";
        file.close();
        EXPECT_TRUE(is_told(before + 1)) << name;
    }
}

TEST_F(FolderWatchTest, ABurstIsReportedOnceWhenItIsOver) {
    watch_ = FolderWatch::start(
        turning_.event(), {tree_.path("a")}, [this] { ++told_; }, milliseconds(1000));
    for (int i = 0; i < 20; ++i) {
        tree_.file("a/" + std::to_string(i) + ".yaml", "a");
        turning_.turn_for(milliseconds(10));
    }
    EXPECT_EQ(told_, 0U) << "not while it goes on";
    EXPECT_TRUE(is_told(1));
    turning_.turn_for(long_after);
    EXPECT_EQ(told_, 1U);
}

TEST_F(FolderWatchTest, AnEditorsFilesAreNotReported) {
    for (const char* name : {"a/.x.yaml.swp", "a/x.yaml~", "a/4913", "a/x.yml"})
        tree_.file(name, "a");
    turning_.turn_for(long_after);
    EXPECT_EQ(told_, 0U);
}

TEST_F(FolderWatchTest, AFolderThatComesLaterIsReportedAndFollowed) {
    tree_.file("unrelated", "a");
    turning_.turn_for(long_after);
    EXPECT_EQ(told_, 0U);
    tree_.folder("missing");
    EXPECT_TRUE(is_told(1)) << "there may be files in it already";
    tree_.file("missing/x.yaml", "a");
    EXPECT_TRUE(is_told(2));
}

TEST_F(FolderWatchTest, AFolderThatGoesAndComesIsFollowed) {
    std::filesystem::remove_all(tree_.path("a"));
    EXPECT_TRUE(is_told(1));
    tree_.folder("a");
    EXPECT_TRUE(is_told(2));
    tree_.file("a/x.yaml", "a");
    EXPECT_TRUE(is_told(3));
}

TEST_F(FolderWatchTest, ADeepFolderIsReportedWhenAllAboveItHaveCome) {
    watch_ = FolderWatch::start(
        turning_.event(), {tree_.path("deep/er/est")}, [this] { ++told_; }, quiet);
    tree_.folder("deep");
    turning_.turn_for(milliseconds(50));
    tree_.folder("deep/er");
    turning_.turn_for(milliseconds(50));
    tree_.folder("deep/er/est");
    EXPECT_TRUE(is_told(1));
    tree_.file("deep/er/est/x.yaml", "a");
    EXPECT_TRUE(is_told(2));
    std::filesystem::remove_all(tree_.path("deep"));
    EXPECT_TRUE(is_told(3));
    tree_.file("deep/er/est/x.yaml", "a"); // all at once
    EXPECT_TRUE(is_told(4));
}

TEST_F(FolderWatchTest, AfterItsEndNothingIsReported) {
    tree_.file("a/x.yaml", "a");
    turning_.turn_for(milliseconds(20));
    watch_.reset();
    turning_.turn_for(long_after);
    EXPECT_EQ(told_, 0U);
}

} // namespace
} // namespace affinityd::events

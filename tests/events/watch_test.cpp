// SPDX-License-Identifier: Apache-2.0
// Sources of the loop one by one: the policy folders and the cpusets.
#include "app/simulated.hpp"
#include "events/cpuset_watch.hpp"
#include "events/folder_watch.hpp"
#include "turning.hpp"

#include <chrono>

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

class CpusetWatchTest : public testing::Test {
  protected:
    void SetUp() override {
        tree_.file("cgroup.controllers", "cpuset cpu\n");
        for (const char* folder : {"", "a.slice/", "a.slice/b.service/", "c.slice/"})
            tree_.file(std::string(folder) + "cgroup.subtree_control", "\n");
        for (const char* folder : {"a.slice/", "a.slice/b.service/", "c.slice/"})
            tree_.file(std::string(folder) + "cpuset.cpus", "\n");
        watch_ = std::make_unique<CpusetWatch>(turning_.event(), tree_.path(), [this] { ++told_; });
    }
    bool is_told_of(const std::string& file) {
        turning_.turn_for(milliseconds(50));
        told_ = 0;
        std::ofstream(tree_.path(file), std::ios::app) << "0-1\n";
        return turning_.until([&] { return told_ > 0; }, milliseconds(500));
    }
    affinityd::test::Tree tree_;
    Turning turning_;
    std::unique_ptr<CpusetWatch> watch_;
    unsigned told_ = 0;
};

TEST_F(CpusetWatchTest, WritesToAFollowedCpusetAndToAllAboveItAreReported) {
    watch_->follow({"/a.slice/b.service"});
    for (const char* file : {"a.slice/b.service/cpuset.cpus", "a.slice/cpuset.cpus",
                             "a.slice/cgroup.subtree_control", "cgroup.subtree_control"})
        EXPECT_TRUE(is_told_of(file)) << file;
    EXPECT_FALSE(is_told_of("c.slice/cpuset.cpus"));
    EXPECT_EQ(watch_->files(), 5U) << "the root has no CPUs to write";
}

TEST_F(CpusetWatchTest, OthersAreFollowedInsteadAndTheRootAlways) {
    watch_->follow({"/a.slice/b.service", "/c.slice"});
    watch_->follow({"/c.slice"});
    EXPECT_TRUE(is_told_of("c.slice/cpuset.cpus"));
    EXPECT_FALSE(is_told_of("a.slice/cpuset.cpus"));
    watch_->follow({});
    EXPECT_FALSE(is_told_of("c.slice/cpuset.cpus"));
    EXPECT_TRUE(is_told_of("cgroup.subtree_control")) << "cpusets may come into use";
}

TEST_F(CpusetWatchTest, GroupsThatAreGoneOrNeverWereAreIgnored) {
    watch_->follow({"/a.slice/b.service", "/nowhere/at.all"});
    std::filesystem::remove_all(tree_.path("a.slice/b.service"));
    turning_.turn_for(milliseconds(50));
    EXPECT_EQ(told_, 0U);
    watch_->follow({"/a.slice/b.service"});
    EXPECT_TRUE(is_told_of("a.slice/cpuset.cpus"));
}

TEST_F(CpusetWatchTest, AGroupOfTheSameNameIsFollowedAnew) {
    watch_->follow({"/a.slice/b.service"});
    for (unsigned round = 0; round < 3; ++round) {
        std::filesystem::remove_all(tree_.path("a.slice/b.service"));
        tree_.file("a.slice/b.service/cpuset.cpus", "\n");
        watch_->follow({"/a.slice/b.service"});
        EXPECT_TRUE(is_told_of("a.slice/b.service/cpuset.cpus")) << round;
        EXPECT_TRUE(is_told_of("a.slice/cpuset.cpus")) << round;
    }
}

TEST_F(CpusetWatchTest, CpusetsOfTheFirstHierarchyAreFollowedInTheirOwnFolder) {
    std::filesystem::remove(tree_.path("cgroup.controllers"));
    tree_.file("cpuset/docker/cpuset.cpus", "0-3\n");
    watch_ = std::make_unique<CpusetWatch>(turning_.event(), tree_.path(), [this] { ++told_; });
    watch_->follow({"/docker"});
    EXPECT_TRUE(is_told_of("cpuset/docker/cpuset.cpus"));
}

TEST_F(CpusetWatchTest, ThousandsAreCutToAThousandFiles) {
    std::vector<std::string> many;
    for (int i = 0; i < 1500; ++i) {
        many.push_back("/s" + std::to_string(i));
        tree_.file("s" + std::to_string(i) + "/cpuset.cpus", "\n");
    }
    watch_->follow(many);
    EXPECT_EQ(watch_->files(), 1024U);
}

} // namespace
} // namespace affinityd::events

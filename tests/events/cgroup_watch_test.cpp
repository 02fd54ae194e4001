// SPDX-License-Identifier: Apache-2.0
// Control groups out of files: cpusets that are written, and processes that are put into groups.
#include "events/cgroup_watch.hpp"
#include "support/readable_log.hpp"
#include "support/tree.hpp"
#include "turning.hpp"

#include <algorithm>

#include <unistd.h>

namespace affinityd::events {
namespace {

using std::chrono::milliseconds;
using test::Turning;
using Names = std::vector<std::string>;

class CgroupWatchTest : public testing::Test {
  protected:
    void SetUp() override {
        tree_.file("cgroup.controllers", "cpuset cpu\n");
        group("");
        for (const char* path : {"a.slice", "a.slice/b.service", "c.slice"})
            group(path);
    }
    void group(const std::string& path) const {
        for (const char* file : {"cgroup.procs", "cgroup.subtree_control", "cpuset.cpus", "memory.max"})
            tree_.file(path + "/" + file, "\n");
    }
    void watch(std::size_t groups = 4) {
        watch_ = std::make_unique<CgroupWatch>(
            turning_.event(), log_.log(), tree_.path(),
            CgroupWatch::Listeners{[this] { ++written_; },
                                   [this](const Names& names) {
                                       ++batches_;
                                       joined_.insert(joined_.end(), names.begin(), names.end());
                                   },
                                   [this] { ++missed_; }});
        ASSERT_TRUE(watch_->start());
        ASSERT_TRUE(turning_.until([&] { return watch_->groups() >= groups; })) << watch_->groups();
        EXPECT_EQ(watch_->groups(), groups);
        // A process that moved before all were watched is left to a pass.
        if (groups > 0) {
            EXPECT_TRUE(turning_.until([&] { return missed_ == 1; })) << missed_;
        }
        missed_ = 0;
    }
    void write(const std::string& file) const { std::ofstream(tree_.path(file), std::ios::app) << "1\n"; }
    bool is_written(const std::string& file) {
        turning_.turn_for(milliseconds(50));
        written_ = 0;
        write(file);
        return turning_.until([&] { return written_ > 0; }, milliseconds(500));
    }
    bool has_joined(const std::string& group) {
        return turning_.until([&] { return std::ranges::count(joined_, group) > 0; });
    }
    affinityd::test::Tree tree_;
    core::test::ReadableLog log_;
    Turning turning_;
    std::unique_ptr<CgroupWatch> watch_;
    unsigned written_ = 0, missed_ = 0, batches_ = 0;
    Names joined_;
};

TEST_F(CgroupWatchTest, OnlyTheFirstWalkThroughAllAsksForAPass) {
    watch();
    group("late.slice");
    EXPECT_TRUE(turning_.until([&] { return watch_->groups() == 5; }));
    turning_.turn_for(milliseconds(200));
    EXPECT_EQ(missed_, 0U);
}

TEST_F(CgroupWatchTest, GroupsBeyondTheShareOfAUserAreLeftOut) {
    const std::size_t most = CgroupWatch::most_of_one_user;
    const auto make = [&](const std::string& path) {
        group(path);
        ASSERT_EQ(::chown(tree_.path(path).c_str(), 65534, 65534), 0);
    };
    for (std::size_t i = 0; i < most; ++i)
        make("user/" + std::to_string(i));
    watch(most + 5);
    make("user/late");
    group("a.slice/new.service");
    EXPECT_TRUE(turning_.until([&] { return watch_->groups() == most + 6; })) << "others have room";
    EXPECT_TRUE(turning_.until([&] { return log_.times("too many") == 1; }));
}

TEST_F(CgroupWatchTest, WritesToAFollowedCpusetAndToAllAboveItAreReported) {
    watch();
    watch_->follow({"/a.slice/b.service"});
    for (const char* file : {"a.slice/b.service/cpuset.cpus", "a.slice/cpuset.cpus",
                             "a.slice/cgroup.subtree_control", "cgroup.subtree_control"})
        EXPECT_TRUE(is_written(file)) << file;
    EXPECT_FALSE(is_written("c.slice/cpuset.cpus"));
    EXPECT_FALSE(is_written("a.slice/memory.max"));
}

TEST_F(CgroupWatchTest, OthersAreFollowedInsteadAndTheRootAlways) {
    watch();
    watch_->follow({"/a.slice/b.service", "/c.slice"});
    watch_->follow({"/c.slice"});
    EXPECT_TRUE(is_written("c.slice/cpuset.cpus"));
    EXPECT_FALSE(is_written("a.slice/cpuset.cpus"));
    watch_->follow({});
    EXPECT_FALSE(is_written("c.slice/cpuset.cpus"));
    EXPECT_TRUE(is_written("cgroup.subtree_control")) << "cpusets may come into use";
}

TEST_F(CgroupWatchTest, AGroupOfTheSameNameIsWatchedAnew) {
    watch();
    watch_->follow({"/a.slice/b.service", "/nowhere/at.all"});
    for (unsigned round = 0; round < 3; ++round) {
        std::filesystem::remove_all(tree_.path("a.slice/b.service"));
        ASSERT_TRUE(turning_.until([&] { return watch_->groups() == 3; })) << round;
        group("a.slice/b.service");
        ASSERT_TRUE(turning_.until([&] { return watch_->groups() == 4; })) << round;
        EXPECT_TRUE(is_written("a.slice/b.service/cpuset.cpus")) << round;
    }
}

TEST_F(CgroupWatchTest, EachHierarchyOfVersionOneIsWatched) {
    std::filesystem::remove(tree_.path("cgroup.controllers"));
    for (const char* path : {"cpuset", "cpuset/docker", "systemd", "systemd/a.slice", "memory/a.slice"})
        group(path);
    watch();
    watch_->follow({"/docker"});
    EXPECT_TRUE(is_written("cpuset/docker/cpuset.cpus"));
    write("systemd/a.slice/cgroup.procs");
    EXPECT_TRUE(has_joined("/systemd/a.slice"));
    write("cpuset/cgroup.procs");
    EXPECT_TRUE(has_joined("/cpuset"));
}

TEST_F(CgroupWatchTest, WithoutControlGroupsNothingIsWatched) {
    std::filesystem::remove_all(tree_.path("cgroup.controllers"));
    watch(0);
}

TEST_F(CgroupWatchTest, GroupsThatProcessesArePutIntoAreReportedTogether) {
    watch();
    for (unsigned i = 0; i < 10; ++i) {
        write("c.slice/cgroup.procs");
        write("a.slice/b.service/cgroup.procs");
    }
    EXPECT_TRUE(has_joined("/c.slice"));
    turning_.turn_for(milliseconds(200));
    EXPECT_EQ(joined_, (Names{"/a.slice/b.service", "/c.slice"}));
    EXPECT_EQ(batches_, 1U);
    EXPECT_EQ(missed_, 0U);
}

TEST_F(CgroupWatchTest, TheRootIsAGroupToo) {
    watch();
    write("cgroup.procs");
    EXPECT_TRUE(has_joined(""));
}

TEST_F(CgroupWatchTest, AGroupThatComesIsReportedForItMayHaveProcesses) {
    watch();
    group("new.slice");
    group("new.slice/inner.scope");
    EXPECT_TRUE(has_joined("/new.slice"));
    EXPECT_TRUE(has_joined("/new.slice/inner.scope"));
    EXPECT_EQ(watch_->groups(), 6U);
}

TEST_F(CgroupWatchTest, AStormOfThousandsIsLeftToAPassAndThatSeldom) {
    watch();
    constexpr unsigned many = 12000; // on a busy machine some thousands are told before the last are seen
    for (unsigned i = 0; i < many; ++i)
        std::filesystem::create_directory(tree_.path("storm" + std::to_string(i)));
    ASSERT_TRUE(turning_.until([&] { return missed_ > 0; }));
    const auto began = test::steady_clock::now();
    for (unsigned round = 0; round < 5; ++round) {
        watch_->leave_to_pass();
        turning_.turn_for(milliseconds(200));
    }
    const auto took = test::steady_clock::now() - began;
    EXPECT_LE(missed_, 2 + took / std::chrono::seconds(5));
    EXPECT_TRUE(turning_.until([&] { return missed_ > 1; })) << "but the last one is not forgotten";
}

TEST_F(CgroupWatchTest, GroupsThatGoWhileEventsAreLostAreForgotten) {
    constexpr std::size_t more = 300;
    const auto name = [](std::size_t i) { return "more" + std::to_string(i); };
    watch();
    for (std::size_t i = 0; i < more; ++i)
        group(name(i));
    ASSERT_TRUE(turning_.until([&] { return watch_->groups() == 4 + more; })) << watch_->groups();
    std::size_t longest_queue = 0;
    ASSERT_TRUE(std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> longest_queue);
    std::ofstream one(tree_.path("cgroup.procs")), other(tree_.path("c.slice/cgroup.procs"));
    for (std::size_t i = 0; i < longest_queue + 100; ++i)
        (i % 2 == 0 ? one : other) << '1' << std::flush; // equal events in a row are one
    for (std::size_t i = 0; i < more; ++i)
        std::filesystem::remove_all(tree_.path(name(i)));
    group(name(0)); // another one
    ASSERT_TRUE(turning_.until([&] { return watch_->groups() == 5; })) << watch_->groups();
    EXPECT_TRUE(turning_.until([&] { return missed_ > 0; }));
    joined_.clear();
    write(name(0) + "/cgroup.procs");
    EXPECT_TRUE(has_joined("/" + name(0)));
    EXPECT_EQ(watch_->groups(), 5U);
}

TEST_F(CgroupWatchTest, WritesIntoHundredsOfGroupsKeepNoProcessWaiting) {
    watch();
    for (unsigned i = 0; i < 200; ++i)
        group("b" + std::to_string(i));
    ASSERT_TRUE(turning_.until([&] { return watch_->groups() == 204 && joined_.size() >= 200; }));
    joined_.clear();
    write("c.slice/cgroup.procs");
    for (unsigned round = 0; round < 60 && std::ranges::count(joined_, "/c.slice") == 0; ++round) {
        for (unsigned i = 0; i < 200; ++i)
            write("b" + std::to_string(i) + "/cgroup.procs");
        turning_.turn_for(milliseconds(100));
    }
    EXPECT_EQ(std::ranges::count(joined_, "/c.slice"), 1);
    EXPECT_LE(joined_.size(), 8 * 64U) << "after a few turns";
    EXPECT_EQ(missed_, 0U);
}

TEST_F(CgroupWatchTest, AGroupThatIsNestedTooDeepCostsNoOther) {
    std::string deep = "a.slice";
    while (deep.size() < CgroupWatch::longest_path + 100)
        deep += "/" + std::string(100, 'd');
    std::filesystem::create_directories(tree_.path(deep));
    watch(4 + (CgroupWatch::longest_path - std::string("/a.slice").size()) / 101);
    write("c.slice/cgroup.procs");
    EXPECT_TRUE(has_joined("/c.slice"));
}

TEST_F(CgroupWatchTest, AfterItsEndNothingIsReported) {
    watch();
    write("c.slice/cgroup.procs");
    watch_.reset();
    turning_.turn_for(milliseconds(200));
    EXPECT_TRUE(joined_.empty());
}

} // namespace
} // namespace affinityd::events

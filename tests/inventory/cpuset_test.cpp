// SPDX-License-Identifier: Apache-2.0
// FactSources::cpuset over trees with either kind of control groups.
#include "inventory/facts.hpp"
#include "recorded.hpp"

#include <gtest/gtest.h>

namespace affinityd::inventory {
namespace {

using namespace test;

constexpr const char* v1 = "sys/fs/cgroup/cpuset";
constexpr const char* v2 = "sys/fs/cgroup";

struct Machine : Tree {
    Machine() { // there when the root is opened
        folder("proc");
        folder("sys");
    }
};

class Cpuset : public testing::Test {
  protected:
    void lives_in(int pid, const std::string& path) const {
        tree_.file("proc/" + std::to_string(pid) + "/cpuset", path + "\n");
    }
    void old_one(const std::string& path, const std::string& effective,
                 const std::string& asked = "0-7") const {
        tree_.file(v1 + path + "/cpuset.effective_cpus", effective);
        tree_.file(v1 + path + "/cpuset.cpus", asked);
    }
    void unified(const std::string& path, const std::string& effective,
                 const std::string& asked = "0-7\n") const {
        tree_.file(v2 + path + "/cpuset.cpus.effective", effective);
        tree_.file(v2 + path + "/cpuset.cpus", asked);
    }
    std::string cpus_of(int pid) {
        const auto* cpus = sources_.cpuset(pid);
        return cpus == nullptr ? "every" : cpus->to_list();
    }
    Machine tree_;
    host::Root root_ = open_root(tree_);
    FactSources sources_{root_};
};

TEST_F(Cpuset, OfVersionOne) {
    old_one("/docker/abc", "2-3\n");
    lives_in(10, "/docker/abc");
    EXPECT_EQ(cpus_of(10), "2-3") << "what holds, not what was asked for";
}

TEST_F(Cpuset, OfVersionTwo) {
    unified("/system.slice/nginx.service", "4,6\n");
    lives_in(10, "/system.slice/nginx.service");
    EXPECT_EQ(cpus_of(10), "4,6");
}

TEST_F(Cpuset, WhereBothAreMountedTheOneWithTheFilesCounts) {
    tree_.folder(std::string(v2) + "/unified/box"); // hybrid: the controller belongs to version 1
    old_one("/box", "1\n");
    lives_in(10, "/box");
    EXPECT_EQ(cpus_of(10), "1");
}

TEST_F(Cpuset, TheRootAndWhatIsNotToldIsEveryCpu) {
    old_one("", "0-7\n");
    unified("", "0-7\n");
    lives_in(10, "/");
    EXPECT_EQ(cpus_of(10), "every");
    EXPECT_EQ(cpus_of(11), "every") << "no such process";
    lives_in(12, "/not/there");
    EXPECT_EQ(cpus_of(12), "every");
    for (const char* path : {"", "relative", "/gone (deleted)", "/..", "/../outside"}) {
        lives_in(13, path);
        EXPECT_EQ(cpus_of(13), "every") << path;
    }
}

TEST_F(Cpuset, WhatCannotBeReadCutsNothing) {
    for (const char* text : {"", "\n", "x", "3-1", "99999999999999999999", "0-4294967295", "\xff\xfe"}) {
        sources_.refresh();
        unified("/odd", text);
        lives_in(10, "/odd");
        EXPECT_EQ(cpus_of(10), "every") << text;
    }
}

TEST_F(Cpuset, IsReadOncePerPass) {
    unified("/box", "1\n");
    lives_in(10, "/box");
    lives_in(11, "/box");
    EXPECT_EQ(cpus_of(10), "1");
    const auto* before = sources_.cpuset(10);
    unified("/box", "2\n");
    EXPECT_EQ(cpus_of(11), "1") << "many processes share one";
    EXPECT_EQ(sources_.cpuset(11), before);
    unified("/other", "3\n");
    lives_in(10, "/other");
    EXPECT_EQ(cpus_of(10), "3") << "a process that moved";
    sources_.refresh();
    EXPECT_EQ(cpus_of(11), "2");
}

TEST_F(Cpuset, MoreThanAThousandCpus) {
    unified("/big", "1000-4095\n");
    lives_in(10, "/big");
    EXPECT_EQ(cpus_of(10), "1000-4095");
}

} // namespace
} // namespace affinityd::inventory

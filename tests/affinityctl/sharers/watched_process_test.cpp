// SPDX-License-Identifier: Apache-2.0
// How a process is called while it is watched.
#include "affinityctl/sharers/watch.hpp"
#include "inventory/recorded.hpp"

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

using namespace affinityd::test;
using affinityd::TaskId;

constexpr TaskId watched{50, 100};

class Watched : public ::testing::Test {
  protected:
    Watched() : root_((become("ex.sh"), open_root(tree_))) {}
    /// The process is called this from now on, and is in this control group.
    void become(const std::string& name, const std::string& group = "/user.slice", char state = 'S',
                unsigned long long start = 100) const {
        add_process(tree_, {.id = 50, .comm = name, .state = state, .start = start});
        tree_.file("proc/50/cgroup", "0::" + group + "\n");
    }
    [[nodiscard]] WatchedProcess begin() const {
        const auto scan = affinityd::inventory::ProcessScan::open(root_, 50);
        EXPECT_TRUE(scan && *scan);
        return watched_process(**scan);
    }
    Tree tree_;
    affinityd::host::Root root_;
};

TEST_F(Watched, OneThatExecutesAnotherProgramHasItsName) {
    auto process = begin();
    EXPECT_EQ(process.pid, 50);
    EXPECT_TRUE(look_again(root_, watched, process));
    EXPECT_EQ(process.name, "ex.sh");
    EXPECT_EQ(process.first_name, "ex.sh");
    become("python3");
    EXPECT_TRUE(look_again(root_, watched, process));
    EXPECT_EQ(process.name, "python3");
    become("server");
    EXPECT_TRUE(look_again(root_, watched, process));
    EXPECT_EQ(process.first_name, "ex.sh") << "that of the beginning";
}

TEST_F(Watched, OneThatComesIntoAServiceIsOfThat) {
    auto process = begin();
    EXPECT_EQ(process.unit, "");
    become("ex.sh", "/system.slice/web.service");
    EXPECT_TRUE(look_again(root_, watched, process));
    EXPECT_EQ(process.unit, "web.service");
    EXPECT_EQ(process.first_unit, "");
}

TEST_F(Watched, OneThatHasEndedStaysAsItWas) {
    become("python3", "/system.slice/web.service");
    auto process = begin();
    become("python3", "/", 'Z');
    EXPECT_FALSE(look_again(root_, watched, process));
    become("sh", "/", 'S', 900); // another one has its number
    EXPECT_FALSE(look_again(root_, watched, process));
    EXPECT_EQ(process.name, "python3");
    EXPECT_EQ(process.unit, "web.service");
}

} // namespace
} // namespace affinityctl

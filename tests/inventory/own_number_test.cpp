// SPDX-License-Identifier: Apache-2.0
// Threads by the number that a container's pid namespace has for them.
#include "inventory/process_files.hpp"
#include "support/tree.hpp"

#include <gtest/gtest.h>

namespace affinityd::inventory {
namespace {

class OwnNumberTest : public testing::Test {
  protected:
    test::Tree tree_;
    void thread(int tid, const std::string& numbers) const {
        tree_.file("proc/100/task/" + std::to_string(tid) + "/status",
                   "Name:\tserver\nNSpid:\t" + numbers + "\nNSpgid:\t1\n");
    }
    [[nodiscard]] std::optional<int> find(int own) const {
        const auto root = host::Root::open(tree_.path());
        EXPECT_TRUE(root);
        return thread_by_own_number(*root, 100, own);
    }
};

TEST_F(OwnNumberTest, TheInnermostNumberCounts) {
    thread(100, "100\t30\t7");
    thread(103, "103\t33\t9");
    thread(250, "250\t34\t30");
    EXPECT_EQ(find(7), 100);
    EXPECT_EQ(find(9), 103);
    EXPECT_EQ(find(30), 250);
    for (const int own : {33, 100, 103, 8, 0, -1})
        EXPECT_EQ(find(own), std::nullopt) << own;
}

TEST_F(OwnNumberTest, NumbersMayHaveBegunAnew) {
    for (int i = 0; i < 50; ++i)
        thread(1000 + i, std::to_string(1000 + i) + "\t" + std::to_string(i < 20 ? 500 + i : 100 + i));
    for (const int i : {0, 19, 20, 49})
        EXPECT_EQ(find(i < 20 ? 500 + i : 100 + i), 1000 + i) << i;
    EXPECT_EQ(find(499), std::nullopt);
}

TEST_F(OwnNumberTest, AnyTextIsNoNumber) {
    tree_.file("proc/100/task/100/status", "Name:\tserver\nNSpid:\tx\t\t\n");
    tree_.file("proc/100/task/101/status", "Name:\tNSpid:\t5\n");
    tree_.file("proc/100/task/102/status", "");
    EXPECT_EQ(find(5), std::nullopt);
    EXPECT_EQ(find(100), std::nullopt);
}

TEST_F(OwnNumberTest, AProcessThatHasGoneHasNone) { EXPECT_EQ(find(1), std::nullopt); }

} // namespace
} // namespace affinityd::inventory

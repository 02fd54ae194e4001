// SPDX-License-Identifier: Apache-2.0
#include "coexist/root_process.hpp"
#include "host/root.hpp"
#include "support/tree.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace affinityd::coexist {
namespace {

TEST(TrustedIds, AllFourMustBeRootsOrOnesOwn) {
    EXPECT_TRUE(has_only_trusted_ids("Name:\tx\nUid:\t0\t0\t0\t0\nGid:\t5\t5\t5\t5\n", 0));
    EXPECT_TRUE(has_only_trusted_ids("Uid:\t7\t0\t7\t0\n", 7));
    EXPECT_FALSE(has_only_trusted_ids("Uid:\t7\t0\t0\t0\n", 0)) << "a set-user-ID program of user 7";
    EXPECT_FALSE(has_only_trusted_ids("Uid:\t0\t7\t0\t0\n", 0));
    EXPECT_FALSE(has_only_trusted_ids("Uid:\t0\t0\t7\t0\n", 0));
    EXPECT_FALSE(has_only_trusted_ids("Uid:\t0\t0\t0\t7\n", 0));
}

TEST(TrustedIds, WhatCannotBeReadIsNotTrusted) {
    for (const char* text :
         {"", "Uid:", "Uid:\t0\n", "Uid:\t0\t0\t0\n", "Uid:\t0\t0\t0\t0\t0\n", "Uid:\t0\t0\t0\tx\n",
          "Gid:\t0\t0\t0\t0\n", "Name:\tUid:\t0\t0\t0\t0\n", "Uid:\t-0\t0\t0\t0\n"})
        EXPECT_FALSE(has_only_trusted_ids(text, 0)) << text;
}

TEST(RootProcess, IsReadFromItsStatus) {
    const test::Tree tree;
    tree.file("proc/10/status", "Name:\tx\nUid:\t0\t0\t0\t0\n");
    tree.file("proc/11/status", "Name:\tx\nUid:\t65534\t65534\t65534\t65534\n");
    const auto root = host::Root::open(tree.path()).value();
    EXPECT_TRUE(is_roots_process(root, 10));
    EXPECT_FALSE(is_roots_process(root, 11));
    EXPECT_FALSE(is_roots_process(root, 12)) << "gone";
}

TEST(ProgramName, IsTheFileItRuns) {
    const test::Tree tree;
    tree.link("proc/10/exe", "/usr/sbin/irqbalance");
    tree.link("proc/11/exe", "/usr/sbin/irqbalance (deleted)");
    tree.folder("proc/12");
    const auto root = host::Root::open(tree.path()).value();
    EXPECT_EQ(program_name(root, 10), "irqbalance");
    EXPECT_EQ(program_name(root, 11), "irqbalance");
    EXPECT_FALSE(program_name(root, 12));
    EXPECT_EQ(program_name(host::Root::open("/").value(), ::getpid()), "coexist-test");
}

} // namespace
} // namespace affinityd::coexist

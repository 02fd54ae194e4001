// SPDX-License-Identifier: Apache-2.0
#include "inventory/facts.hpp"
#include "inventory/process_files.hpp"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace affinityd::inventory {
namespace {

std::string line(const std::string& comm, const std::string& flags = "4194304",
                 const std::string& start = "724926") {
    return "123 (" + comm + ") S 7 123 124 0 -1 " + flags + " 98 0 0 0 1 2 0 0 20 0 3 0 " + start +
           " 3133440 409 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
}

TEST(Stat, Fields) {
    const std::string text = line("cat");
    const auto stat = parse_stat(text);
    ASSERT_TRUE(stat);
    EXPECT_EQ(stat->session, 124);
    EXPECT_EQ(stat->id, 123);
    EXPECT_EQ(stat->comm, "cat");
    EXPECT_EQ(stat->state, 'S');
    EXPECT_EQ(stat->parent, 7);
    EXPECT_EQ(stat->flags, 4194304U);
    EXPECT_EQ(stat->threads, 3);
    EXPECT_EQ(stat->start_time, 724926U);
    EXPECT_FALSE(stat->is_dead());
}

class HostileNames : public testing::TestWithParam<const char*> {};

TEST_P(HostileNames, DoNotShiftTheFields) {
    const std::string text = line(GetParam());
    const auto stat = parse_stat(text);
    ASSERT_TRUE(stat);
    EXPECT_EQ(stat->comm, GetParam());
    EXPECT_EQ(stat->parent, 7);
    EXPECT_EQ(stat->start_time, 724926U);
}

INSTANTIATE_TEST_SUITE_P(Table, HostileNames,
                         testing::Values("", " ", ")", "(", "a) R 1 (b", ") S 99 99", "((", "))",
                                         "nginx: worker", "\xff\xfe", "(sd-pam)", "kworker/u8:2-ev"));

class BrokenStats : public testing::TestWithParam<const char*> {};

TEST_P(BrokenStats, GiveNothing) { EXPECT_FALSE(parse_stat(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Table, BrokenStats,
                         testing::Values("", "\n", "123", "123 (cat", "123 cat) S 1", ")(", "123 (cat)",
                                         "123 (cat) S", "123 (cat) S x 1 1 0 -1 0",
                                         "(cat) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5",
                                         "4x (cat) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5",
                                         "4 5 (cat) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5",
                                         "0 (cat) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5",
                                         "-4 (cat) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5",
                                         "4 (cat) SS 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5",
                                         "4 (cat) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0",
                                         "4 (cat) S 1 1 1 0 -1 99999999999 0 0 0 0 0 0 0 0 20 0 1 0 5",
                                         "4 (cat) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 -5"));

TEST(Stat, TheShortestWholeLine) {
    EXPECT_TRUE(parse_stat("4 (cat) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5"));
}

TEST(Stat, LargestValues) {
    const std::string text = line("x", "4294967295", "18446744073709551615");
    const auto stat = parse_stat(text);
    ASSERT_TRUE(stat);
    EXPECT_EQ(stat->flags, 0xffffffffU);
    EXPECT_EQ(stat->start_time, ~0ULL);
}

TEST(Stat, EndedTasks) {
    for (const char state : {'Z', 'X', 'x'}) {
        std::string text = line("cat");
        text[text.find(") S") + 2] = state;
        EXPECT_TRUE(parse_stat(text)->is_dead()) << state;
    }
}

TEST(Stat, RandomBytesNeverCrash) {
    std::mt19937 random(3);
    for (int round = 0; round < 20000; ++round) {
        std::string text = line("na) me");
        for (int i = 0; i < 5; ++i)
            text[random() % text.size()] = static_cast<char>(random());
        text.resize(random() % (text.size() + 1));
        const auto stat = parse_stat(text);
        EXPECT_TRUE(!stat || stat->id > 0);
    }
}

TEST(Stat, NamesAreUnescapedOnce) {
    EXPECT_EQ(unescape_comm("plain"), "plain");
    EXPECT_EQ(unescape_comm("a\\nb"), "a\nb");
    EXPECT_EQ(unescape_comm("a\\\\nb"), "a\\nb");
    EXPECT_EQ(unescape_comm("\\\\"), "\\");
    EXPECT_EQ(unescape_comm("end\\"), "end\\");
    EXPECT_EQ(unescape_comm("\\t"), "\\t");
}

struct CgroupCase {
    const char* text;
    const char* path;
};

class Cgroups : public testing::TestWithParam<CgroupCase> {};

TEST_P(Cgroups, OneHierarchyIsChosen) { EXPECT_EQ(cgroup_of(GetParam().text), GetParam().path); }

INSTANTIATE_TEST_SUITE_P(
    Table, Cgroups,
    testing::Values(CgroupCase{"0::/system.slice/nginx.service\n", "/system.slice/nginx.service"},
                    CgroupCase{"12:cpuset:/docker/x\n1:name=systemd:/system.slice/a.service\n0::/\n",
                               "/system.slice/a.service"},
                    CgroupCase{"1:name=systemd:/old\n0::/new\n", "/new"}, CgroupCase{"4:memory:/only\n", "/"},
                    CgroupCase{"0::/\n", "/"}, CgroupCase{"1:name=systemd:/\n", "/"}, CgroupCase{"", "/"},
                    CgroupCase{"garbage\n::\n:", "/"}, CgroupCase{"0::/a:b:c", "/a:b:c"},
                    CgroupCase{"0::relative\n", "/"}, CgroupCase{"1::/other\n", "/"},
                    CgroupCase{"0::/../../outside\n", "/../../outside"}));

TEST(EffectiveIds, AreTheSecondNumbers) {
    const auto ids = parse_effective_ids("Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t1000\t33\t0\t0\nGroups:\t\n");
    ASSERT_TRUE(ids);
    EXPECT_EQ(ids->uid, 0U);
    EXPECT_EQ(ids->gid, 33U);
    for (const char* text : {"", "Uid:\t1\nGid:\t1\t1", "Uid:\t1\t2\t3\t4\n", "Uid:\t1\t-2\nGid:\t1\t1\n",
                             "Uid:\tx\ty\nGid:\tx\ty\n"})
        EXPECT_FALSE(parse_effective_ids(text)) << text;
}

// A name cannot forge another line: the kernel writes it with its line ends escaped, in the first line.
TEST(EffectiveIds, ANameThatLooksLikeTheKey) {
    const auto ids = parse_effective_ids("Name:\tUid:\\nUid:\nUid:\t5\t6\t7\t8\nGid:\t5\t6\t7\t8\n");
    ASSERT_TRUE(ids);
    EXPECT_EQ(ids->uid, 6U);
}

} // namespace
} // namespace affinityd::inventory

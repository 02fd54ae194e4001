// SPDX-License-Identifier: Apache-2.0
#include "inventory/known_files.hpp"

#include <gtest/gtest.h>

namespace affinityd::inventory {
namespace {

constexpr std::size_t many = 1000;

std::vector<PolledFile> files(std::vector<std::uint64_t> inodes) {
    std::vector<PolledFile> found;
    for (const auto inode : inodes)
        found.push_back({7, inode});
    return found;
}

TEST(KnownFiles, ThoseThatWereThereBeforeAreNotNew) {
    KnownFiles known;
    EXPECT_EQ(known.see(files({1, 2, 3}), many).count, 0U) << "when they came is not known";
    const auto fresh = known.see(files({2, 3, 4, 9}), many);
    EXPECT_EQ(fresh.count, 2U);
    EXPECT_EQ(fresh.inodes, (std::vector<std::uint64_t>{4, 9}));
    EXPECT_EQ(known.see(files({2, 9}), many).count, 0U) << "some ended";
    EXPECT_EQ(known.see(files({2, 5}), many).count, 1U) << "as many as before, but others";
    EXPECT_EQ(known.see(files({}), many).count, 0U);
    EXPECT_EQ(known.see(files({6}), many).count, 1U) << "the first one after there was none";
}

TEST(KnownFiles, FilesWithOneInodeCountOnce) {
    KnownFiles known;
    known.see({}, many);
    EXPECT_EQ(known.see(files({4, 4, 4, 5}), many).count, 2U) << "eventfds and timers share one";
}

TEST(KnownFiles, OfMoreThanItMayRememberItKnowsTheNumber) {
    KnownFiles known;
    known.see(files({1, 2, 3}), 2);
    EXPECT_EQ(known.size(), 0U);
    const auto more = known.see(files({4, 5, 6, 7, 8}), 2);
    EXPECT_EQ(more.count, 2U) << "two more at least have come";
    EXPECT_TRUE(more.inodes.empty());
    EXPECT_EQ(known.see(files({8}), 2).count, 0U);
    EXPECT_EQ(known.size(), 1U);
    EXPECT_EQ(known.see(files({8, 9}), 2).count, 1U) << "it is remembered again";
}

} // namespace
} // namespace affinityd::inventory

// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_usage.hpp"
#include "host/root.hpp"
#include "support/tree.hpp"

#include <set>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::accounting {
namespace {

using Inodes = std::multiset<std::uint64_t>;

class SocketWalks : public testing::Test {
  protected:
    SocketWalks() {
        tree_.folder("proc/10/fd");
        root_.emplace(host::Root::open(tree_.path()).value());
    }
    void descriptor(int number, const std::string& target) const {
        tree_.link("proc/10/fd/" + std::to_string(number), target);
    }
    affinityd::test::Tree tree_;
    std::optional<host::Root> root_;
};

Inodes all_of(SocketWalk& walk, unsigned& slices) {
    Inodes found;
    for (slices = 1;; ++slices) {
        const auto is_through =
            walk.step([&](std::uint64_t inode) { found.insert(inode); }, [] { return true; });
        if (!is_through || *is_through) return found;
    }
}

TEST_F(SocketWalks, OnlySocketsAreTold) {
    descriptor(0, "/dev/null");
    descriptor(1, "socket:[77]");
    descriptor(2, "pipe:[78]");
    descriptor(3, "socket:[79]");
    descriptor(4, "socket:[x]");
    descriptor(5, "socket:[80");
    descriptor(6, "/tmp/" + std::string(200, 's'));
    descriptor(7, "socket:[77]");
    auto walk = SocketWalk::open(*root_, 10, 100);
    ASSERT_TRUE(walk && *walk);
    unsigned slices = 0;
    EXPECT_EQ(all_of(**walk, slices), (Inodes{77, 77, 79}));
    EXPECT_EQ(slices, 9U) << "one descriptor in each of the smallest slices";
    EXPECT_FALSE((*walk)->is_truncated());
}

TEST_F(SocketWalks, DescriptorsAreBounded) {
    for (int i = 0; i < 10; ++i)
        descriptor(i, "socket:[" + std::to_string(100 + i) + "]");
    auto walk = SocketWalk::open(*root_, 10, 4);
    unsigned slices = 0;
    EXPECT_EQ(all_of(**walk, slices).size(), 4U);
    EXPECT_TRUE((*walk)->is_truncated());
}

TEST_F(SocketWalks, AProcessThatIsGoneHasNone) {
    const auto walk = SocketWalk::open(*root_, 11, 100);
    ASSERT_TRUE(walk);
    EXPECT_FALSE(*walk);
}

/// What the kernel shows of this very process.
TEST(LiveSocketWalk, FindsTheSocketOfThisProcess) {
    const auto root = host::Root::open("/").value();
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct stat status {};
    ASSERT_EQ(::fstat(fd, &status), 0);
    auto walk = SocketWalk::open(root, ::getpid(), 1 << 18);
    ASSERT_TRUE(walk && *walk);
    unsigned slices = 0;
    EXPECT_TRUE(all_of(**walk, slices).contains(status.st_ino));
    ::close(fd);
}

TEST(LiveSocketWalk, AListThatCannotBeOpenedIsAnErrorAndNoEmptyList) {
    const auto root = host::Root::open("/").value();
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{0, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const auto walk = SocketWalk::open(root, ::getpid(), 100);
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_FALSE(walk);
}

} // namespace
} // namespace affinityd::accounting

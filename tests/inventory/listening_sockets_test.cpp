// SPDX-License-Identifier: Apache-2.0
#include "accepting.hpp"
#include "host/foreign_socket.hpp"
#include "inventory/listening_sockets.hpp"

#include <algorithm>
#include <array>

#include <sched.h>

namespace affinityd::inventory {
namespace {

using Inodes = std::vector<std::uint64_t>;

std::uint64_t inode_of(int fd) { return *host::ForeignFiles::open(::getpid())->inode(fd); }

class ListeningAround : public Accepting {};

TEST_F(ListeningAround, OfOneAddressBelongTogether) {
    const int one = listener(0), other = listener(port_of(one)), elsewhere = listener(0);
    Inodes both{inode_of(one), inode_of(other)};
    std::ranges::sort(both);
    const auto found = ListeningSockets::read(root, ::getpid());
    EXPECT_TRUE(found.are_all());
    EXPECT_EQ(found.at_address_of(inode_of(one)), both);
    EXPECT_EQ(found.at_address_of(inode_of(elsewhere)), Inodes{inode_of(elsewhere)});
    EXPECT_TRUE(found.contains(inode_of(other)));
    EXPECT_TRUE(found.at_address_of(0).empty());
    for (const int fd : {one, other, elsewhere})
        ::close(fd);
}

TEST_F(ListeningAround, AConnectionIsNone) {
    const int one = listener(0);
    const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_of(one));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const auto found = ListeningSockets::read(root, ::getpid());
    EXPECT_FALSE(found.contains(inode_of(client)));
    EXPECT_EQ(found.at_address_of(inode_of(one)), Inodes{inode_of(one)});
    ::close(one);
    ::close(client);
}

TEST_F(ListeningAround, ThoseThatWereClosedMeanwhileAreForgotten) {
    const int one = listener(0), other = listener(port_of(one));
    auto before = ListeningSockets::read(root, ::getpid());
    ASSERT_EQ(before.at_address_of(inode_of(one)).size(), 2U);
    ::close(other);
    before.keep_only(ListeningSockets::read(root, ::getpid()));
    EXPECT_EQ(before.at_address_of(inode_of(one)), Inodes{inode_of(one)});
    before.keep_only({}); // of which it is not known whether they are all
    EXPECT_EQ(before.at_address_of(inode_of(one)), Inodes{inode_of(one)});
    ::close(one);
}

TEST_F(ListeningAround, OfAnotherNetworkNamespaceAreReadThroughAProcessInIt) {
    const int here = listener(0);
    const auto port = port_of(here);
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const Forked child([&] {
        std::uint64_t inode = 0;
        if (::unshare(CLONE_NEWNET) == 0) { // the test needs root
            const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
            sockaddr_in6 address{};
            address.sin6_family = AF_INET6;
            address.sin6_port = htons(port);
            if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                ::listen(fd, 8) == 0)
                inode = inode_of(fd);
        }
        std::ignore = ::write(pipe[1], &inode, sizeof inode);
        ::pause();
    });
    std::uint64_t inode = 0;
    ASSERT_EQ(::read(pipe[0], &inode, sizeof inode), static_cast<ssize_t>(sizeof inode));
    ASSERT_NE(inode, 0U);
    const auto found = ListeningSockets::read(root, child.pid());
    EXPECT_TRUE(found.are_all());
    EXPECT_EQ(found.at_address_of(inode), Inodes{inode});
    EXPECT_FALSE(found.contains(inode_of(here)));
    EXPECT_FALSE(ListeningSockets::read(root, ::getpid()).contains(inode));
    for (const int fd : {here, pipe[0], pipe[1]})
        ::close(fd);
}

TEST_F(ListeningAround, OfAProcessThatHasEndedAreNotKnown) {
    int pid = 0;
    {
        const Forked child([] { ::pause(); });
        pid = child.pid();
    }
    EXPECT_FALSE(ListeningSockets::read(root, pid).are_all());
}

} // namespace
} // namespace affinityd::inventory

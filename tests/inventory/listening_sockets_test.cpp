// SPDX-License-Identifier: Apache-2.0
#include "accepting.hpp"
#include "host/foreign_socket.hpp"
#include "inventory/accept_work.hpp"
#include "inventory/listener_holders.hpp"
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
    const auto found = ListeningSockets::read(root, ::getpid(), persons);
    EXPECT_TRUE(found.are_all_of(::geteuid()));
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
    const auto found = ListeningSockets::read(root, ::getpid(), persons);
    EXPECT_FALSE(found.contains(inode_of(client)));
    EXPECT_EQ(found.at_address_of(inode_of(one)), Inodes{inode_of(one)});
    ::close(one);
    ::close(client);
}

TEST_F(ListeningAround, ThoseThatWereClosedMeanwhileAreForgotten) {
    const int one = listener(0), other = listener(port_of(one));
    auto before = ListeningSockets::read(root, ::getpid(), persons);
    ASSERT_EQ(before.at_address_of(inode_of(one)).size(), 2U);
    ::close(other);
    before.keep_only(ListeningSockets::read(root, ::getpid(), persons));
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
    const auto found = ListeningSockets::read(root, child.pid(), persons);
    EXPECT_TRUE(found.are_all_of(::geteuid()));
    EXPECT_EQ(found.at_address_of(inode), Inodes{inode});
    EXPECT_FALSE(found.contains(inode_of(here)));
    EXPECT_FALSE(ListeningSockets::read(root, ::getpid(), persons).contains(inode));
    for (const int fd : {here, pipe[0], pipe[1]})
        ::close(fd);
}

TEST_F(ListeningAround, OfAProcessThatHasEndedAreNotKnown) {
    int pid = 0;
    {
        const Forked child([] { ::pause(); });
        pid = child.pid();
    }
    EXPECT_FALSE(ListeningSockets::read(root, pid, persons).are_all_of(::geteuid()));
}

/// Whoever has very many keeps nobody else's from being known.
TEST_F(ListeningAround, OfAUserWhoHasVeryManyNotAllAreKnown) {
    std::vector<LocalSocket> sockets(ListeningSockets::most_of_user + 2);
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        sockets[i].inode = static_cast<std::uint32_t>(i + 1);
        sockets[i].port = 80;
        sockets[i].user = 1000;
        sockets[i].state = SocketState::listen;
    }
    sockets.back().user = 33;
    const auto found = ListeningSockets::of(sockets);
    EXPECT_FALSE(found.are_all_of(1000));
    EXPECT_TRUE(found.are_all_of(33));
    EXPECT_TRUE(found.contains(sockets.size()));
    EXPECT_EQ(found.user_of(sockets.size()), 33U);
    EXPECT_FALSE(found.contains(sockets.size() - 1));
    EXPECT_TRUE(found.has(sockets.size() - 1)) << "it is there all the same";
    EXPECT_FALSE(found.has(sockets.size() + 1));
}

TEST_F(ListeningAround, WhoHasOneOpenIsFoundUnderWhateverDescriptor) {
    const int one = listener(0);
    const auto inode = inode_of(one);
    const Forked child([&] {
        ::dup2(one, 77);
        ::close(one);
        ::pause();
    });
    ListenerHolders holders(root);
    host::InUse at;
    bool is_whole = true;
    std::optional<ListenerHolders::Holder> among;
    for (int i = 0; i < 2000 && (!among || among->number != 77); ++i) {
        among = holders.among(std::array{child.pid()}, inode, at, is_whole);
        ::usleep(1000);
    }
    ASSERT_TRUE(among);
    EXPECT_EQ(among->pid, child.pid());
    EXPECT_EQ(at.pid, child.pid()) << "who pays for it";
    EXPECT_EQ(among->number, 77);
    EXPECT_TRUE(is_whole);
    EXPECT_EQ(holders.is_listed(inode), ListenerHolders::Listed::yes);
    EXPECT_TRUE(holders.are_here(std::array{child.pid()}));
    host::InUse given_up;
    given_up.is_given_up = true;
    EXPECT_FALSE(holders.among(std::array{child.pid()}, inode, given_up, is_whole)) << "nobody waits for it";
    ::close(one);
    const auto anywhere = holders.anywhere(inode, at);
    ASSERT_TRUE(anywhere);
    EXPECT_EQ(anywhere->pid, child.pid());
    EXPECT_FALSE(holders.anywhere(0, at));
    EXPECT_EQ(holders.is_listed(0), ListenerHolders::Listed::no);
}

TEST(AcceptWork, ConnectionsThatWereAcceptedAreReadFromTheNamespace) {
    EXPECT_EQ(parse_passive_opens(
                  "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm ActiveOpens PassiveOpens\nTcp: 1 7 4711\n"),
              4711U);
    for (const auto* text : {"", "Tcp: PassiveOpens\n", "Tcp: PassiveOpens\nTcp:\n",
                             "Tcp: PassiveOpens\nTcp: x\n", "Tcp: ActiveOpens\nTcp: 3\n"})
        EXPECT_FALSE(parse_passive_opens(text)) << text;
}

TEST_F(ListeningAround, WorkIsWhatThreadsDidSinceTheyWereReadBefore) {
    const Forked child([] {
        volatile int turns = 0;
        for (;;)
            turns = turns + 1;
    });
    AcceptWork work(root);
    AcceptSockets process{id(child.pid())};
    process.sockets.push_back({1, 6, 80, {}, true, -1, {child.pid()}});
    work.note(process);
    EXPECT_FALSE(process.sockets[0].work) << "nothing is known of what was before";
    std::size_t sum = 0;
    for (int i = 0; i < 1000 && sum < 5; ++i) {
        ::usleep(20'000);
        process.sockets[0].work.reset();
        work.note(process);
        ASSERT_TRUE(process.sockets[0].work);
        sum += *process.sockets[0].work;
    }
    EXPECT_GE(sum, 5U);
    const auto look = [&](bool is_serving) {
        ::usleep(20'000);
        process.sockets[0].work.reset();
        process.sockets[0].is_serving = is_serving;
        work.note(process);
        return process.sockets[0].work.has_value();
    };
    EXPECT_FALSE(look(true)) << "it may be for these connections";
    EXPECT_FALSE(look(false)) << "it had them at first";
    EXPECT_TRUE(look(false));
}

} // namespace
} // namespace affinityd::inventory

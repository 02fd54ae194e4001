// SPDX-License-Identifier: Apache-2.0
#include "../support/no_descriptors_left.hpp"
#include "host/in_thread.hpp"
#include "inventory/sockets.hpp"
#include "recorded.hpp"

#include <set>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::inventory {
namespace {

using namespace test;

std::string line(unsigned number, const std::string& endpoints, unsigned inode) {
    return "   " + std::to_string(number) + ": " + endpoints +
           " 00000000:00000000 00:00000000 00000000     0        0 " + std::to_string(inode) +
           " 1 0000 100 0 0 10 0\n";
}

const std::string listening = "0100007F:07E8 00000000:0000 0A";
const std::string connected = "0100007F:07E8 0100007F:0001 01";
const std::string closing = "0100007F:07E8 0100007F:0001 06";

TEST(SocketTable, RecordedSocketsAreFoundByInode) {
    const Tree tree;
    tree.file("proc/net/tcp", "  sl local\n" + line(0, listening, 1642) + line(1, connected, 1643) +
                                  line(2, closing, 1644) + line(3, connected, 0));
    tree.file("proc/net/udp6", line(0,
                                    "00000000000000000000000001000000:0016 "
                                    "00000000000000000000000000000000:0000 07",
                                    1642 + 65536));
    const auto root = open_root(tree);
    const auto all = read_socket_table(root, {}).value();
    EXPECT_EQ(all.sockets.size(), 3U)
        << "without the closing one, which serves nobody, and the one without owner";
    ASSERT_NE(all.find(1642), nullptr);
    EXPECT_TRUE(all.find(1642)->listens());
    EXPECT_EQ(all.find(1643)->state, SocketState::established);
    ASSERT_NE(all.find(1642 + 65536), nullptr);
    EXPECT_EQ(all.find(1642 + 65536)->local.to_text(), "::1");
    EXPECT_EQ(all.find(1644), nullptr);
    EXPECT_EQ(all.find(0), nullptr);
    EXPECT_EQ(all.find(1642ULL << 32), nullptr);
    EXPECT_EQ(read_socket_table(root, {.wanted = Wanted::listeners})->sockets.size(), 2U);
    const auto cut = read_socket_table(root, {.most = 1}).value();
    EXPECT_EQ(cut.sockets.size(), 1U);
    EXPECT_TRUE(cut.is_truncated);
    EXPECT_FALSE(all.is_truncated);
    EXPECT_TRUE(shares_network_namespace(root, 1)) << "not known to be another";
}

/// Many listening sockets on one port of the loopback, by SO_REUSEPORT.
class ManySockets {
  public:
    explicit ManySockets(unsigned count, std::uint16_t port = 0) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port);
        socklen_t length = sizeof address;
        for (unsigned i = 0; i < count; ++i) {
            host::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            const int on = 1;
            ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
            EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
            EXPECT_EQ(::listen(fd.get(), 1), 0);
            ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
            struct stat status {};
            ::fstat(fd.get(), &status);
            inodes_.insert(status.st_ino);
            fds_.push_back(std::move(fd));
        }
        port_ = ntohs(address.sin_port);
    }
    [[nodiscard]] const std::set<std::uint64_t>& inodes() const { return inodes_; }
    [[nodiscard]] std::uint16_t port() const { return port_; }

  private:
    std::vector<host::Fd> fds_;
    std::set<std::uint64_t> inodes_;
    std::uint16_t port_ = 0;
};

TEST(SocketTable, AThreadReadsItAndEndsWithTheReading) {
    const auto root = host::Root::open().value();
    const ManySockets sockets(900);
    host::InThread<SocketTable> reading([&root] { return read_socket_table(root, {}); });
    auto table = reading.take(std::chrono::seconds(60));
    ASSERT_TRUE(table && *table);
    for (const auto inode : sockets.inodes())
        EXPECT_NE((*table)->find(inode), nullptr) << inode;
    const auto own = socket_inodes(root.proc().dir(std::to_string(::getpid())).value(), 65536).value();
    EXPECT_TRUE(std::ranges::includes(own, sockets.inodes()));
    for (int attempt = 0; attempt < 20; ++attempt)
        const host::InThread<SocketTable> left_off([&root] { return read_socket_table(root, {}); });
}

TEST(SocketTable, MostIsKeptOfThePortsThatAreAskedFor) {
    const auto root = host::Root::open().value();
    const ManySockets sockets(300);
    const auto table = read_socket_table(root, {Wanted::listeners, 100, {{sockets.port(), sockets.port()}}});
    ASSERT_TRUE(table);
    EXPECT_EQ(table->sockets.size(), 100U);
    EXPECT_TRUE(table->is_truncated);
    for (const auto& socket : table->sockets)
        EXPECT_TRUE(sockets.inodes().contains(socket.inode));
}

TEST(SocketTable, WithoutFreeDescriptorsItIsAnError) {
    const auto root = host::Root::open().value();
    const auto own = root.proc().dir(std::to_string(::getpid())).value();
    const NoDescriptorsLeft none;
    EXPECT_FALSE(read_socket_table(root, {}));
    const auto inodes = socket_inodes(own, 65536);
    ASSERT_FALSE(inodes);
    EXPECT_EQ(inodes.error().code, EMFILE);
}

TEST(Listeners, ListsPortsThatMatterAndReportsNewOnes) {
    const auto root = host::Root::open().value();
    const ManySockets sockets(2);
    const std::vector<std::uint64_t> inodes(sockets.inodes().begin(), sockets.inodes().end());
    Listeners listeners(root);
    EXPECT_FALSE(listeners.is_awaited({})) << "no port matters";
    listeners.want({{sockets.port(), sockets.port()}});
    EXPECT_FALSE(listeners.is_awaited(std::chrono::seconds(60)));
    ASSERT_TRUE(listeners.list());
    EXPECT_EQ(ports_of(*listeners.list(), inodes), std::vector{sockets.port()});
    const ManySockets more(1, sockets.port());
    pollfd news{listeners.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&news, 1, 60'000), 1);
    EXPECT_EQ(listeners.list()->sockets.size(), 3U);
}

} // namespace
} // namespace affinityd::inventory

// SPDX-License-Identifier: Apache-2.0
#include "host/foreign_socket.hpp"
#include "support/sent_file.hpp"
#include "support/tcp_connection.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::host {
namespace {

using Clock = std::chrono::steady_clock;

using Connection = test::TcpConnection;

class ForeignSocketTest : public testing::Test {
  protected:
    void SetUp() override {
        auto files = ForeignFiles::open(::getpid());
        ASSERT_TRUE(files);
        files_.emplace(std::move(*files));
    }
    std::optional<ForeignFiles> files_;
};

TEST_F(ForeignSocketTest, OnlyAnEstablishedConnectionIsSilentForATime) {
    const Connection connection;
    ASSERT_EQ(::send(connection.client.get(), "x", 1, 0), 1);
    char byte = 0;
    ASSERT_EQ(::recv(connection.served.get(), &byte, 1, 0), 1);
    const auto socket = files_->socket(connection.served.get());
    ASSERT_TRUE(socket);
    ASSERT_TRUE(socket->silence());
    EXPECT_LT(*socket->silence(), std::chrono::seconds(10));
    EXPECT_GE(socket->incoming_cpu().value_or(-1), 0);
    EXPECT_FALSE(socket->accepts());
    const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::listen(listener.get(), 8), 0);
    const Fd local(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    for (const int number : {listener.get(), local.get()}) {
        const auto other = files_->socket(number);
        ASSERT_TRUE(other);
        EXPECT_FALSE(other->silence());
        EXPECT_EQ(other->napi_id(), 0U);
    }
}

TEST_F(ForeignSocketTest, FilesOfOtherKindsAreNotTouched) {
    const Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const Fd reader(ends[0]), writer(ends[1]);
    for (const int number : {file.get(), reader.get(), writer.get()})
        EXPECT_EQ(files_->socket(number).error(), ENOTSOCK);
    EXPECT_EQ(files_->socket(99999).error(), EBADF);
    EXPECT_EQ(files_->socket(-1).error(), EBADF);
}

TEST_F(ForeignSocketTest, NobodyWaitsForAConnectionThatLingers) {
    Connection connection;
    const int served = connection.served.get();
    connection.let_served_linger(20);
    const auto begun = Clock::now();
    {
        const auto socket = files_->socket(served);
        ASSERT_TRUE(socket);
        connection.served.reset(); // its owner does not wait, because it is not the last
    }                              // we are
    EXPECT_LT(Clock::now() - begun, std::chrono::seconds(10));
}

TEST_F(ForeignSocketTest, NobodyWaitsForAConnectionThatLingersInALocalSocket) {
    Connection connection;
    connection.let_served_linger(20);
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    Fd sender(ends[0]), receiver(ends[1]);
    ASSERT_EQ(test::send_with_file(sender.get(), "x", 1, connection.served.get()), 1);
    connection.served.reset();
    sender.reset();
    const auto begun = Clock::now();
    {
        const auto socket = files_->socket(receiver.get());
        ASSERT_TRUE(socket);
        receiver.reset();
    }
    EXPECT_LT(Clock::now() - begun, std::chrono::seconds(10));
}

Fd listener_of_port(std::uint16_t port) {
    Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    EXPECT_EQ(::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), 8), 0);
    return listener;
}

/// Two containers may have the same address each: connections of one are never the other's.
TEST_F(ForeignSocketTest, ListenersOfTwoNetworkNamespacesAreNotBoundToTheSame) {
    const auto here = listener_of_port(0);
    const auto port = files_->socket(here.get())->port();
    const auto beside = listener_of_port(port);
    Fd elsewhere;
    std::thread([&] { // leaves this namespace alone
        ASSERT_EQ(::unshare(CLONE_NEWNET), 0) << "the test needs root";
        elsewhere = listener_of_port(port);
    })
        .join();
    const auto bound_to = [&](const Fd& listener) { return files_->socket(listener.get())->bound_to(); };
    EXPECT_EQ(bound_to(here), bound_to(beside));
    EXPECT_NE(bound_to(here), bound_to(elsewhere));
}

/// A listener with SO_REUSEPORT of one port; what `prepare` does to it comes first.
Fd listener_of(const std::string& address, std::uint16_t port, const std::function<void(int)>& prepare = {}) {
    const bool is_v6 = address.contains(':');
    Fd fd(::socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    EXPECT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes), 0);
    if (prepare) prepare(fd.get());
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    EXPECT_EQ(is_v6 ? ::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr)
                    : ::inet_pton(AF_INET, address.c_str(), &v4.sin_addr),
              1);
    const int status = is_v6 ? ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&v6), sizeof v6)
                             : ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
    EXPECT_EQ(status, 0) << address;
    EXPECT_EQ(::listen(fd.get(), 8), 0);
    return fd;
}

TEST_F(ForeignSocketTest, TellsHowManyConnectionsWaitForAListener) {
    const auto listener = listener_of("127.0.0.1", 0);
    const auto socket = files_->socket(listener.get());
    EXPECT_EQ(socket->backlog(), 0U);
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = htons(socket->port()), .sin_addr = {}, .sin_zero = {}};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const Fd client(::socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(socket->backlog(), 1U);
    const Fd taken(::accept(listener.get(), nullptr, nullptr));
    EXPECT_EQ(socket->backlog(), 0U);
    EXPECT_FALSE(files_->socket(client.get())->backlog()) << "a connection has none";
}

/// The kernel shares connections among listeners of each of these by itself, though all have one port.
TEST_F(ForeignSocketTest, ListenersOfOnePortThatShareNoConnectionsAreNotBoundToTheSame) {
    const auto only_v6 = [](int yes) {
        return [yes](int fd) { EXPECT_EQ(::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes), 0); };
    };
    const auto to_lo = [](int fd) { EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3), 0); };
    const auto first = listener_of("127.0.0.1", 0);
    const auto port = files_->socket(first.get())->port();
    std::vector<Fd> all;
    for (int twice = 0; twice < 2; ++twice) {
        all.push_back(listener_of("127.0.0.1", port));
        all.push_back(listener_of("127.0.0.2", port));
        all.push_back(listener_of("0.0.0.0", port));
        all.push_back(listener_of("0.0.0.0", port, to_lo));
        all.push_back(listener_of("::1", port, only_v6(1)));
        all.push_back(listener_of("::", port, only_v6(1)));
        all.push_back(listener_of("::", port, only_v6(0)));
    }
    std::map<std::vector<std::uint8_t>, int> groups;
    for (const auto& one : all)
        ++groups[files_->socket(one.get())->bound_to()];
    EXPECT_EQ(groups.size(), all.size() / 2);
    for (const auto& [address, members] : groups)
        EXPECT_EQ(members, 2);
}

} // namespace
} // namespace affinityd::host

// SPDX-License-Identifier: Apache-2.0
#include "host/foreign_socket.hpp"
#include "support/tcp_connection.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

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

} // namespace
} // namespace affinityd::host

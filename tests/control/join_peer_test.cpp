// SPDX-License-Identifier: Apache-2.0
// What somebody may send along: files whose closing takes as long as their owner likes.
#include "control/join_peer.hpp"
#include "support/sent_file.hpp"
#include "support/tcp_connection.hpp"

#include <array>
#include <chrono>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::control {
namespace {

using Clock = std::chrono::steady_clock;

class JoinPeerTest : public testing::Test {
  protected:
    void SetUp() override {
        std::array<int, 2> ends{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
        sender_ = host::Fd(ends[0]);
        served_ = host::Fd(ends[1]);
        const int on = 1;
        ASSERT_EQ(::setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
    }
    /// A packet with a connection that lingers; its sender has closed it.
    void send_lingering(const char* text) {
        tcp_.let_served_linger(20);
        ASSERT_GE(test::send_with_file(sender_.get(), text, std::strlen(text), tcp_.served.get()), 0);
        tcp_.served.reset();
    }
    [[nodiscard]] std::optional<JoinPeer> peer(bool may_hold_files = true) {
        return JoinPeer::of(JoinConnection(std::move(served_), may_hold_files));
    }
    test::TcpConnection tcp_;
    host::Fd sender_, served_;
    Clock::time_point begun_ = Clock::now();
    void TearDown() override {
        EXPECT_LT(Clock::now() - begun_, std::chrono::seconds(10));
        tcp_.client.reset(); // whoever waits for it
    }
};

TEST_F(JoinPeerTest, NobodyWaitsForAFileBesideAPacket) {
    send_lingering("join");
    auto one = peer();
    ASSERT_TRUE(one);
    EXPECT_EQ(one->read(), JoinPeer::Read::not_its_own);
    one->answer({});
}

TEST_F(JoinPeerTest, WhereNoFilesComeAPacketIsReadAtOnce) {
    auto one = peer(false);
    ASSERT_TRUE(one);
    EXPECT_EQ(one->read(), JoinPeer::Read::nothing_yet);
    ASSERT_EQ(::send(sender_.get(), "join", 4, 0), 4);
    EXPECT_EQ(one->read(), JoinPeer::Read::packet);
    EXPECT_EQ(one->packet().size(), 4U);
    EXPECT_EQ(one->read(), JoinPeer::Read::nothing_yet);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::send(sender_.get(), "join", 4, 0) == 4 ? 0 : 2);
    int ended = 0;
    ::waitpid(child, &ended, 0);
    ASSERT_EQ(ended, 0);
    EXPECT_EQ(one->read(), JoinPeer::Read::not_its_own);
    sender_.reset();
    EXPECT_EQ(one->read(), JoinPeer::Read::gone);
}

TEST_F(JoinPeerTest, NorForOneBesideAPacketThatNobodyReads) {
    ASSERT_EQ(::send(sender_.get(), "join", 4, 0), 4);
    send_lingering("");
    auto one = peer();
    ASSERT_TRUE(one);
    EXPECT_EQ(one->read(), JoinPeer::Read::packet);
    EXPECT_EQ(one->packet().size(), 4U);
    one.reset();
    char byte = 0;
    EXPECT_EQ(::send(sender_.get(), &byte, 1, MSG_NOSIGNAL), -1) << "it is closed for the sender";
}

TEST_F(JoinPeerTest, NorForOneOverAConnectionThatIsDropped) {
    send_lingering("join");
    ASSERT_TRUE(peer());
}

} // namespace
} // namespace affinityd::control

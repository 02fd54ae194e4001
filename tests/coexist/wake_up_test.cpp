// SPDX-License-Identifier: Apache-2.0
#include "coexist/irqbalance_call.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::coexist {
namespace {

using Clock = WakeUp::Clock;
using std::chrono::hours;
using std::chrono::milliseconds;

bool is_readable(const WakeUp& wake_up, int timeout = 0) {
    pollfd waiting{wake_up.fd(), POLLIN, 0};
    return ::poll(&waiting, 1, timeout) == 1;
}

TEST(WakeUp, IsQuietUntilTheMomentHasCome) {
    WakeUp wake_up;
    ASSERT_GE(wake_up.fd(), 0);
    EXPECT_FALSE(is_readable(wake_up));
    wake_up.set(-1, Clock::now() + hours(1));
    EXPECT_FALSE(is_readable(wake_up));
    wake_up.set(-1, Clock::now() + milliseconds(1));
    EXPECT_TRUE(is_readable(wake_up, 60'000));
    wake_up.set(-1, Clock::now() + hours(1));
    EXPECT_FALSE(is_readable(wake_up)) << "another moment replaces the one that has come";
    wake_up.set(-1, Clock::time_point{});
    EXPECT_TRUE(is_readable(wake_up, 60'000)) << "a moment long past";
    wake_up.clear();
    EXPECT_FALSE(is_readable(wake_up));
}

TEST(WakeUp, FollowsOneDescriptor) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    WakeUp wake_up;
    wake_up.set(pair[0], Clock::now() + hours(1));
    EXPECT_FALSE(is_readable(wake_up));
    ASSERT_EQ(::write(pair[1], "x", 1), 1);
    EXPECT_TRUE(is_readable(wake_up));
    wake_up.set(-1, Clock::now() + hours(1));
    EXPECT_FALSE(is_readable(wake_up));
    wake_up.set(pair[0], Clock::now() + hours(1));
    EXPECT_TRUE(is_readable(wake_up));
    wake_up.clear();
    EXPECT_FALSE(is_readable(wake_up));
    ::close(pair[0]);
    ::close(pair[1]);
}

} // namespace
} // namespace affinityd::coexist

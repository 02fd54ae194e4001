// SPDX-License-Identifier: Apache-2.0
#include "host/close_aside.hpp"
#include "support/tcp_connection.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace affinityd::host {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

TEST(CloseAsideTest, AConnectionThatLingersIsNotWaitedForAsLongAsItsOwnerLikes) {
    const auto begun = steady_clock::now();
    CloseAside aside;
    test::TcpConnection connection;
    connection.let_served_linger(600);
    aside.close(std::move(connection.served));
    EXPECT_LT(steady_clock::now() - begun, seconds(30)) << "nor does who closes it";
    while (aside.waiting() > 0 && steady_clock::now() - begun < seconds(30))
        ::usleep(10'000);
    EXPECT_EQ(aside.waiting(), 0);
}

/// What was sent still arrives.
TEST(CloseAsideTest, NothingOfItIsLost) {
    CloseAside aside;
    test::TcpConnection connection;
    connection.let_served_linger(600);
    aside.close(std::move(connection.served));
    for (int i = 0; i < 3000 && aside.waiting() > 0; ++i)
        ::usleep(10'000);
    std::size_t got = 0;
    std::array<char, 65536> bytes{};
    ssize_t count = 0;
    while ((count = ::recv(connection.client.get(), bytes.data(), bytes.size(), 0)) > 0)
        got += static_cast<std::size_t>(count);
    EXPECT_EQ(count, 0) << "it ends in order";
    EXPECT_GT(got, 100'000U) << "more than fits into a few packets";
}

/// Somebody may send any number of them.
TEST(CloseAsideTest, ThreadsCloseOneAfterAnother) {
    std::set<std::string> threads;
    CloseAside aside;
    for (int i = 0; i < 1000; ++i) {
        aside.close(Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
            threads.insert(entry.path().filename());
        while (aside.waiting() >= 4)
            ::usleep(100);
    }
    EXPECT_LE(threads.size(), 20U) << "one for many, and others when this one has no CPU";
    const auto begun = steady_clock::now();
    while (aside.waiting() > 0 && steady_clock::now() - begun < seconds(30))
        ::usleep(1000);
    EXPECT_EQ(aside.waiting(), 0);
}

TEST(CloseAsideTest, WhatIsLeftIsClosedWhenItIsGone) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const Fd read_end(ends[0]);
    CloseAside().close(Fd(ends[1]));
    pollfd closed{.fd = read_end.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&closed, 1, 30'000), 1);
    EXPECT_NE(closed.revents & POLLHUP, 0);
}

} // namespace
} // namespace affinityd::host
